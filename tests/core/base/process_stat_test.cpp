// process_stat: a live process, one that waits to be reaped, one that is gone.
#include "core/base/process_stat.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"

namespace assay {
namespace {

TEST(ProcessStat, TellsLivingFromEnded) {
  EXPECT_TRUE(process_stat(getpid()).runs());
  EXPECT_EQ(process_stat(getpid()).start, process_start(getpid()));
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t ended{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(process_stat(child).state, 'Z');
  EXPECT_FALSE(process_stat(child).runs());
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(process_stat(child).runs());
  EXPECT_EQ(process_stat(child).start, 0);
}

}  // namespace
}  // namespace assay
