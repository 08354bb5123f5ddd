// Ranks by torchrun's and Slurm's variables; every mistake names its variable.
#include "core/worker/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "assay/error.h"

namespace assay::worker {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

using Set = std::map<std::string, std::string>;

Variables of(Set set) {
  return [set = std::move(set)](const std::string& name) -> std::optional<std::string> {
    const auto found = set.find(name);
    return found == set.end() ? std::nullopt : std::optional(found->second);
  };
}

Set torchrun() {
  return {{"RANK", "3"},
          {"WORLD_SIZE", "4"},
          {"LOCAL_RANK", "1"},
          {"MASTER_ADDR", "node7"},
          {"MASTER_PORT", "29500"}};
}

Set slurm() {
  return {{"SLURM_PROCID", "5"},
          {"SLURM_NTASKS", "8"},
          {"SLURM_LOCALID", "1"},
          {"SLURM_JOB_NODELIST", "node[03-04]"},
          {"SLURM_JOB_ID", "1234567"}};
}

Set with(Set set, const std::string& name, const std::string& value) {
  set[name] = value;
  return set;
}

Set without(Set set, const std::string& name) {
  set.erase(name);
  return set;
}

std::string error(const Set& set) {
  try {
    launch_environment(of(set));
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

TEST(LaunchEnvironment, Torchrun) {
  const auto e = launch_environment(of(torchrun()));
  ASSERT_TRUE(e);
  EXPECT_EQ(e->launcher, "torchrun");
  EXPECT_EQ(e->rank, 3);
  EXPECT_EQ(e->world, 4);
  EXPECT_EQ(e->local_rank, 1);
  EXPECT_EQ(e->master_address, "node7");
  EXPECT_EQ(e->master_port, 29500);
}

TEST(LaunchEnvironment, Slurm) {
  const auto e = launch_environment(of(slurm()));
  ASSERT_TRUE(e);
  EXPECT_EQ(e->launcher, "slurm");
  EXPECT_EQ(e->rank, 5);
  EXPECT_EQ(e->world, 8);
  EXPECT_EQ(e->local_rank, 1);
  EXPECT_EQ(e->master_address, "node03");
  EXPECT_EQ(e->master_port, 19567);
  EXPECT_EQ(launch_environment(of(with(slurm(), "MASTER_PORT", "1700")))->master_port, 1700);
}

TEST(LaunchEnvironment, NeitherIsNothing) {
  EXPECT_FALSE(launch_environment(of({})));
  EXPECT_FALSE(launch_environment(of({{"SLURM_JOB_ID", "1"}})));
}

TEST(LaunchEnvironment, AllMissingVariablesAreNamedAtOnce) {
  EXPECT_THAT(error({{"RANK", "0"}}),
              AllOf(HasSubstr("WORLD_SIZE is not set"), HasSubstr("LOCAL_RANK is not set"),
                    HasSubstr("MASTER_ADDR is not set"), HasSubstr("MASTER_PORT is not set")));
  EXPECT_THAT(error(without(slurm(), "SLURM_LOCALID")), HasSubstr("SLURM_LOCALID is not set"));
}

TEST(LaunchEnvironment, BadValuesAreNamed) {
  EXPECT_THAT(error(with(torchrun(), "RANK", "4")), HasSubstr("RANK='4' is not in [0, 3]"));
  EXPECT_THAT(error(with(torchrun(), "RANK", "x")), HasSubstr("RANK='x'"));
  EXPECT_THAT(error(with(torchrun(), "LOCAL_RANK", "4")), HasSubstr("LOCAL_RANK='4'"));
  EXPECT_THAT(error(with(torchrun(), "MASTER_PORT", "70000")), HasSubstr("MASTER_PORT='70000'"));
  EXPECT_THAT(error(with(slurm(), "SLURM_JOB_NODELIST", "node[3")),
              HasSubstr("is no list of hosts"));
}

TEST(LaunchEnvironment, TorchrunUnderSlurm) {
  Set both = torchrun();
  both.merge(Set{{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}});  // one torchrun per node
  EXPECT_EQ(launch_environment(of(both))->rank, 3);
  EXPECT_THAT(error(with(both, "SLURM_NTASKS", "4")),
              HasSubstr("RANK=3 contradicts SLURM_PROCID=1 (both count 4 ranks)"));
}

TEST(RankFromEnvironment, TheWorldMustBeTheCells) {
  EXPECT_EQ(rank_from_environment(of(torchrun()), 4), 3);
  EXPECT_THROW(rank_from_environment(of(torchrun()), 2), Error);
  EXPECT_THROW(rank_from_environment(of({}), 1), Error);
}

TEST(NodeLists, Expand) {
  EXPECT_THAT(expand_node_list("a"), ElementsAre("a"));
  EXPECT_THAT(expand_node_list("n[08-11,2],login1"),
              ElementsAre("n08", "n09", "n10", "n11", "n2", "login1"));
  for (const char* bad : {"", "n[3-1]", "n[x]", "n[", "n[-1]"}) {
    EXPECT_THROW(expand_node_list(bad), Error) << bad;
  }
}

}  // namespace
}  // namespace assay::worker
