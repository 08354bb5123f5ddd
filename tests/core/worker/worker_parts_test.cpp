// Events, exit codes and cores of a rank.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <new>
#include <nlohmann/json.hpp>

#include "assay/error.h"
#include "core/worker/confine.h"
#include "core/worker/events.h"
#include "core/worker/guard.h"

namespace assay::worker {
namespace {

using testing::ElementsAre;

class Events : public testing::Test {
 protected:
  Events() {
    EXPECT_EQ(pipe(ends_), 0);
    fcntl(ends_[0], F_SETFL, O_NONBLOCK);
  }
  ~Events() override {
    close(ends_[0]);
    close(ends_[1]);
  }
  std::string all() {
    std::string text(1 << 20, '\0');
    const ssize_t n = read(ends_[0], text.data(), text.size());
    text.resize(n < 0 ? 0 : static_cast<size_t>(n));
    return text;
  }
  int ends_[2] = {};
};

TEST_F(Events, AreJsonLines) {
  EventPipe pipe(ends_[1]);
  pipe.phase("build");
  pipe.progress(3, 60, 1000, 2.5, 7);
  EXPECT_EQ(all(),
            "{\"e\":\"phase\",\"phase\":\"build\"}\n"
            "{\"allocated_bytes\":7,\"e\":\"progress\",\"loss\":2.5,\"step\":3,\"steps\":60,"
            "\"tokens_per_s\":1000.0}\n");
}

TEST_F(Events, AFullPipeDropsWholeLinesAndNeverWaits) {
  EventPipe pipe(ends_[1]);
  for (int i = 0; i < 100000; ++i) pipe.phase("step");
  const std::string text = all();
  EXPECT_EQ(text.size() % std::string("{\"e\":\"phase\",\"phase\":\"step\"}\n").size(), 0u);
  EXPECT_EQ(text.back(), '\n');
}

TEST_F(Events, WithoutASupervisorNothingHappens) { EventPipe(-1).alive(); }

TEST_F(Events, LongMessagesAreCutToOneLine) {
  EventPipe(ends_[1]).error("optim/lion", std::string(100000, 'x'));
  const auto event = nlohmann::json::parse(all());
  EXPECT_EQ(event["component"], "optim/lion");
  EXPECT_EQ(event["message"].get<std::string>().size(), 3000u);
}

TEST_F(Events, HeartbeatSaysAliveAtOnceAndSurvivesItsChore) {
  EventPipe pipe(ends_[1]);
  {
    Heartbeat heartbeat(pipe, [] { throw InfrastructureError("full"); });
  }
  EXPECT_EQ(all().substr(0, 14), "{\"e\":\"alive\"}\n");
}

TEST_F(Events, ExceptionsBecomeExitCodes) {
  EventPipe pipe(ends_[1]);
  testing::internal::CaptureStderr();
  EXPECT_EQ(guarded(pipe, [] {}), 0);
  EXPECT_EQ(guarded(pipe, [] { throw Error("a", "do this"); }), 1);
  EXPECT_EQ(guarded(pipe, [] { throw std::bad_alloc(); }), 12);
  EXPECT_EQ(guarded(pipe, [] { throw OutOfMemory("8 GiB"); }), 12);
  EXPECT_EQ(guarded(pipe, [] { throw std::runtime_error("x: can't allocate memory: 9"); }), 12);
  EXPECT_EQ(guarded(pipe, [] { throw InvalidRun("nan"); }), 13);
  EXPECT_EQ(guarded(pipe, [] { throw InfrastructureError("gone"); }), 14);
  EXPECT_EQ(guarded(pipe, [] { throw 7; }), 1);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::StartsWith("error: a\n  hint: do this\n"));
}

TEST(Cores, AreSharedOutByRank) {
  EXPECT_THAT(rank_cores({4, 5, 6, 7}, 0, 2), ElementsAre(4, 5));
  EXPECT_THAT(rank_cores({4, 5, 6, 7}, 1, 2), ElementsAre(6, 7));
  EXPECT_THAT(rank_cores({4, 5, 6}, 1, 2), ElementsAre(5, 6));
  EXPECT_THAT(rank_cores({4}, 3, 4), ElementsAre(4));
  EXPECT_THAT(rank_cores({}, 0, 1), testing::IsEmpty());
}

}  // namespace
}  // namespace assay::worker
