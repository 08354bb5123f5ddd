// Who holds which tokens, and which queries meet which keys where: every visible pair exactly once.
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>

#include "assay/error.h"
#include "pieces.h"

namespace assay::parallel {
namespace {

struct Cut {
  int64_t length, ranks;
  bool headtail;
};

void PrintTo(const Cut& c, std::ostream* out) {
  *out << c.length << " over " << c.ranks << (c.headtail ? " headtail" : " contiguous");
}

const std::vector<Cut> kCuts{{8, 2, true},   {24, 2, false}, {24, 2, true}, {24, 3, true},
                             {24, 4, false}, {24, 4, true},  {40, 5, true}, {16, 1, true}};

/// Rows of document starts; two of them without a cut.
Documents some_documents(int64_t length, uint64_t seed) {
  std::mt19937_64 random(seed);
  Documents documents{{{0}, {0, length / 2}, {0, 1, length - 1}}};
  for (int row = 0; row < 5; ++row) {
    std::vector<int64_t> starts{0};
    for (int64_t place = 1; place < length; ++place) {
      if (random() % 5 == 0) starts.push_back(place);
    }
    documents.starts.push_back(starts);
  }
  return documents;
}

int64_t document_of(const std::vector<int64_t>& starts, int64_t place) {
  return std::upper_bound(starts.begin(), starts.end(), place) - starts.begin();
}

/// How often each query of row `row` meets each key, by place.
using Meetings = std::vector<std::vector<int>>;

void meet(const Pieces& pieces, int64_t row, const std::vector<int64_t>& queries,
          const std::vector<int64_t>& keys, Meetings& meetings) {
  for (const Piece& piece : pieces) {
    if (piece.row >= 0 && piece.row != row) continue;
    for (int64_t i = 0; i < piece.queries.size(); ++i) {
      const int64_t seen =
          piece.causal ? i + 1 + piece.keys.size() - piece.queries.size() : piece.keys.size();
      const auto q = static_cast<size_t>(queries.at(static_cast<size_t>(piece.queries.begin + i)));
      for (int64_t j = 0; j < seen; ++j) {
        const int64_t k = keys.at(static_cast<size_t>(piece.keys.begin + j));
        ++meetings.at(q).at(static_cast<size_t>(k));
      }
    }
  }
}

void expect_visible_pairs_once(const Meetings& meetings, const std::vector<int64_t>& starts) {
  for (size_t q = 0; q < meetings.size(); ++q) {
    for (size_t k = 0; k < meetings.size(); ++k) {
      const auto a = static_cast<int64_t>(q), b = static_cast<int64_t>(k);
      const bool visible = b <= a && document_of(starts, a) == document_of(starts, b);
      ASSERT_EQ(meetings[q][k], visible ? 1 : 0) << "query " << q << " and key " << k;
    }
  }
}

class Cuts : public testing::TestWithParam<Cut> {
 protected:
  Sequence sequence() const {
    const Cut c = GetParam();
    return {c.length, c.ranks, c.headtail};
  }
};

TEST_P(Cuts, TheRanksHoldEveryPlaceOnceAndInOrder) {
  const Sequence s = sequence();
  std::vector<int64_t> all;
  for (int64_t rank = 0; rank < s.ranks(); ++rank) {
    const auto places = s.places(rank);
    EXPECT_EQ(static_cast<int64_t>(places.size()), s.local());
    EXPECT_TRUE(std::is_sorted(places.begin(), places.end()));
    for (int64_t place = 0; place <= s.length(); ++place) {
      EXPECT_EQ(s.before(rank, place),
                std::count_if(places.begin(), places.end(), [&](int64_t p) { return p < place; }));
    }
    all.insert(all.end(), places.begin(), places.end());
  }
  std::sort(all.begin(), all.end());
  std::vector<int64_t> expected(static_cast<size_t>(s.length()));
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(all, expected);
}

TEST_P(Cuts, ScatterAndWholeAreInverse) {
  const Sequence s = sequence();
  const Tensor whole = at::arange(2 * s.length() * 3).view({2, s.length(), 3});
  const Tensor parts = at::empty({s.ranks(), 2, s.local(), 3}, whole.options());
  s.scatter(whole, parts);
  EXPECT_TRUE(at::equal(s.whole(parts), whole));
  for (int64_t rank = 0; rank < s.ranks(); ++rank) {
    const auto places = s.places(rank);
    for (int64_t i = 0; i < s.local(); ++i) {
      EXPECT_TRUE(at::equal(parts.select(0, rank).select(1, i),
                            whole.select(1, places[static_cast<size_t>(i)])));
    }
  }
}

TEST_P(Cuts, TheStepsOfARingMeetEveryVisiblePairOnce) {
  const Sequence s = sequence();
  const Documents documents = some_documents(s.length(), 7);
  for (size_t row = 0; row < documents.starts.size(); ++row) {
    Meetings meetings(static_cast<size_t>(s.length()),
                      std::vector<int>(static_cast<size_t>(s.length())));
    for (int64_t rank = 0; rank < s.ranks(); ++rank) {
      for (int64_t held = 0; held < s.ranks(); ++held) {
        meet(pieces_of_block(s, rank, held, documents), static_cast<int64_t>(row), s.places(rank),
             s.places(held), meetings);
      }
    }
    expect_visible_pairs_once(meetings, documents.starts[row]);
  }
}

TEST_P(Cuts, AGatheredRowMeetsEveryVisiblePairOnce) {
  const Sequence s = sequence();
  const Documents documents = some_documents(s.length(), 8);
  std::vector<int64_t> all(static_cast<size_t>(s.length()));
  std::iota(all.begin(), all.end(), 0);
  for (size_t row = 0; row < documents.starts.size(); ++row) {
    Meetings meetings(all.size(), std::vector<int>(all.size()));
    for (int64_t rank = 0; rank < s.ranks(); ++rank) {
      meet(pieces_of_row(s, rank, documents), static_cast<int64_t>(row), s.places(rank), all,
           meetings);
    }
    expect_visible_pairs_once(meetings, documents.starts[row]);
  }
}

/// Without documents a step of the ring is one call, and rows are not told apart.
TEST_P(Cuts, AStepIsOneCallWithoutDocuments) {
  const Sequence s = sequence();
  for (int64_t rank = 0; rank < s.ranks(); ++rank) {
    for (int64_t held = 0; held < s.ranks(); ++held) {
      const Pieces pieces = pieces_of_block(s, rank, held, {{{0}, {0}}});
      EXPECT_LE(pieces.size(), 1u);
      for (const Piece& piece : pieces) EXPECT_EQ(piece.row, -1);
    }
  }
}

/// The largest share of the causal work over the mean: (2n - 1) / n, or 1 with headtail, at every
/// step of a ring as well.
TEST_P(Cuts, WorkIsAsUnequalAsTheClosedForm) {
  const Sequence s = sequence();
  const int64_t n = s.ranks();
  int64_t largest = 0, total = 0;
  for (int64_t rank = 0; rank < n; ++rank) {
    const int64_t work = work_of(pieces_of_row(s, rank, {}), 1);
    int64_t of_steps = 0;
    for (int64_t held = 0; held < n; ++held) {
      const int64_t step = work_of(pieces_of_block(s, rank, held, {}), 1);
      if (GetParam().headtail) {
        EXPECT_EQ(step, s.local() * s.local());
      }
      of_steps += step;
    }
    EXPECT_EQ(work, of_steps);
    largest = std::max(largest, work);
    total += work;
  }
  EXPECT_EQ(total, s.length() * s.length());
  const double closed = GetParam().headtail ? 1.0 : (2.0 * n - 1) / n;
  EXPECT_EQ(static_cast<double>(largest * n) / total, closed);
}

INSTANTIATE_TEST_SUITE_P(Table, Cuts, testing::ValuesIn(kCuts));

TEST(Sequence, RefusesALengthThatChunksDoNotDivide) {
  EXPECT_NO_THROW(Sequence(12, 4, false));
  try {
    Sequence(12, 4, true);
    FAIL() << "12 tokens are no 8 chunks";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("R-CPSEQ"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace assay::parallel
