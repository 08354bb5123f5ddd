// Mesh: coordinates, groups of every kind, refusals; GroupMap: order of connecting.
#include "assay/mesh.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what() + error.hint();
  }
  return "";
}

constexpr MeshDegrees kMesh{.pp = 2, .dp_replicate = 2, .dp_shard = 2, .cp = 2, .tp = 2, .ep = 4};

TEST(Mesh, TheOrderIsPpOutermostTpFastest) {
  const Mesh mesh(kMesh, 0b10110);
  EXPECT_EQ(mesh.world(), 32);
  EXPECT_EQ(mesh.coordinate(MeshDim::pp), 1);
  EXPECT_EQ(mesh.coordinate(MeshDim::dp_replicate), 0);
  EXPECT_EQ(mesh.coordinate(MeshDim::dp_shard), 1);
  EXPECT_EQ(mesh.coordinate(MeshDim::cp), 1);
  EXPECT_EQ(mesh.coordinate(MeshDim::tp), 0);
}

TEST(Mesh, GroupsOfOneRank) {
  const Mesh mesh(kMesh, 5);  // pp 0, dp_replicate 0, dp_shard 1, cp 0, tp 1
  EXPECT_THAT(mesh.ranks(MeshGroup::pp), ElementsAre(5, 21));
  EXPECT_THAT(mesh.ranks(MeshGroup::dp_replicate), ElementsAre(5, 13));
  EXPECT_THAT(mesh.ranks(MeshGroup::dp_shard), ElementsAre(1, 5));
  EXPECT_THAT(mesh.ranks(MeshGroup::cp), ElementsAre(5, 7));
  EXPECT_THAT(mesh.ranks(MeshGroup::tp), ElementsAre(4, 5));
  EXPECT_THAT(mesh.ranks(MeshGroup::batch), ElementsAre(1, 5, 9, 13));
  EXPECT_THAT(mesh.ranks(MeshGroup::loss), ElementsAre(1, 3, 5, 7, 9, 11, 13, 15));
  EXPECT_THAT(mesh.ranks(MeshGroup::fsdp), ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(mesh.ranks(MeshGroup::ep), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(mesh.ranks(MeshGroup::efsdp), ElementsAre(1, 5));
  EXPECT_EQ(mesh.size(MeshGroup::world), 32);
  EXPECT_EQ(mesh.index(MeshGroup::fsdp), 2);
  EXPECT_EQ(mesh.coordinate(MeshDim::ep), 1);
}

TEST(Mesh, EveryGroupPartitionsTheWorldAndItsMembersAgree) {
  for (int g = 0; g <= static_cast<int>(MeshGroup::world); ++g) {
    const auto group = static_cast<MeshGroup>(g);
    std::map<int, std::vector<int>> group_of_rank;
    for (int rank = 0; rank < 32; ++rank) group_of_rank[rank] = Mesh(kMesh, rank).ranks(group);
    for (const auto& [rank, members] : group_of_rank) {
      EXPECT_EQ(std::set<int>(members.begin(), members.end()).count(rank), 1u);
      for (const int member : members) EXPECT_EQ(group_of_rank[member], members);
    }
  }
}

TEST(Mesh, RefusesWhatCannotBe) {
  EXPECT_THAT(message_of([] { Mesh({.tp = 0}, 0); }), HasSubstr("[R-MESH] mesh.tp is 0"));
  EXPECT_THAT(message_of([] { Mesh({.tp = 2, .ep = 3}, 0); }),
              HasSubstr("mesh.ep 3 does not divide dp_shard * cp * tp = 2"));
  EXPECT_THAT(message_of([] { Mesh({.tp = 2}, 2); }), HasSubstr("rank 2 is outside"));
  EXPECT_THAT(message_of([] { (void)parse_mesh_dim("dp_shrad"); }),
              HasSubstr("did you mean 'dp_shard'?"));
  EXPECT_EQ(parse_mesh_dim("cp"), MeshDim::cp);
}

/// Notes the groups it is asked for and hands out communicators that do nothing.
class NotingBackend final : public CommBackend {
 public:
  std::shared_ptr<Communicator> connect(const GroupSpec& spec) override {
    class Silent final : public Communicator {
     public:
      using Communicator::Communicator;

     protected:
      std::unique_ptr<Operation> do_start(const Request&) override { return nullptr; }
    };
    asked.push_back(spec.key());
    return std::make_shared<Silent>(spec);
  }
  std::vector<std::string> asked;
};

TEST(GroupMap, ConnectsInOneOrderWhateverIsAskedFirst) {
  const Mesh mesh({.pp = 2, .dp_shard = 2, .tp = 2}, 3);
  const auto backend = std::make_shared<NotingBackend>();
  GroupMap groups(mesh, backend);
  EXPECT_EQ(groups(MeshGroup::tp).name(), "tp");
  EXPECT_THAT(backend->asked, ElementsAre("pp@3", "dp_shard@1", "tp@2"));
  EXPECT_EQ(groups(MeshDim::pp).rank(), 0);
  EXPECT_EQ(groups(MeshGroup::cp).size(), 1);
  EXPECT_EQ(backend->asked.size(), 3u);
}

TEST(GroupMap, NeedsABackendOnlyForMoreThanOneRank) {
  GroupMap alone(Mesh{}, nullptr);
  EXPECT_EQ(alone(MeshGroup::world).size(), 1);
  GroupMap two(Mesh({.tp = 2}, 0), nullptr);
  EXPECT_THROW((void)two(MeshGroup::tp), std::logic_error);
}

}  // namespace
}  // namespace assay
