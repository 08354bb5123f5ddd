// Messages keep their boundaries and carry descriptors.
#include "core/base/worker_protocol.h"

#include <gtest/gtest.h>

namespace assay {

TEST(Messages, CarryJsonAndDescriptors) {
  auto [a, b] = message_pair();
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const UniqueFd reader(pipe_ends[0]), writer(pipe_ends[1]);
  const int fds[] = {writer.get(), writer.get()};
  ASSERT_TRUE(send_message(a.get(), {{"spawn", 1}}, fds));
  ASSERT_TRUE(send_message(a.get(), {{"second", 2}}));
  auto first = receive_message(b.get(), true);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->body, (nlohmann::json{{"spawn", 1}}));
  ASSERT_EQ(first->fds.size(), 2u);
  ASSERT_EQ(write(first->fds[1].get(), "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(read(reader.get(), &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
  EXPECT_EQ(receive_message(b.get(), true)->body, (nlohmann::json{{"second", 2}}));
  EXPECT_FALSE(receive_message(b.get(), false));
}

TEST(Messages, TellTheEnd) {
  auto [a, b] = message_pair();
  a.reset();
  EXPECT_TRUE(receive_message(b.get(), true)->end);
  EXPECT_FALSE(send_message(b.get(), {}));
}

}  // namespace assay
