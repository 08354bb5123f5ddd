// Starting and collecting of ranks.
#include "core/conformance/ranks.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

namespace assay::conformance {
namespace {

using RankBody = std::function<void(int rank, const std::filesystem::path& folder)>;

std::string complaint_of(const RankBody& body, int rank, const std::filesystem::path& folder) {
  try {
    body(rank, folder);
    return "";
  } catch (const std::exception& e) {
    return "rank " + std::to_string(rank) + ": " + e.what();
  } catch (...) {
    return "rank " + std::to_string(rank) + ": threw something that is no std::exception";
  }
}

/// A child that writes its complaint into a pipe and ends without running destructors.
struct Child {
  pid_t pid = -1;
  int pipe = -1;
};

Child start_child(const RankBody& body, int rank, const std::filesystem::path& folder) {
  int ends[2];
  if (::pipe(ends) != 0) throw Error("no pipe for a rank");
  const pid_t pid = ::fork();
  if (pid == 0) {
    const std::string text = complaint_of(body, rank, folder);
    [[maybe_unused]] const ssize_t size = ::write(ends[1], text.data(), text.size());
    ::_exit(text.empty() ? 0 : 1);
  }
  ::close(ends[1]);
  return {pid, ends[0]};
}

std::string join_child(const Child& child, int rank) {
  std::string text;
  char piece[4096];
  for (ssize_t size; (size = ::read(child.pipe, piece, sizeof piece)) > 0;) {
    text.append(piece, static_cast<size_t>(size));
  }
  ::close(child.pipe);
  int status = 0;
  ::waitpid(child.pid, &status, 0);
  if (text.empty() && status != 0) {
    text = "rank " + std::to_string(rank) + " died with status " + std::to_string(status);
  }
  return text;
}

std::string first_of(const std::vector<std::string>& complaints) {
  for (const std::string& complaint : complaints) {
    if (!complaint.empty()) return complaint;
  }
  return "";
}

std::string as_processes(const RankBody& body, int size, const std::filesystem::path& folder) {
  std::vector<Child> children;
  for (int rank = 0; rank < size; ++rank) children.push_back(start_child(body, rank, folder));
  std::vector<std::string> complaints;
  for (int rank = 0; rank < size; ++rank) {
    complaints.push_back(join_child(children[static_cast<size_t>(rank)], rank));
  }
  return first_of(complaints);
}

std::string as_threads(const RankBody& body, int size, const std::filesystem::path& folder) {
  std::vector<std::string> complaints(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back(
        [&, rank] { complaints[static_cast<size_t>(rank)] = complaint_of(body, rank, folder); });
  }
  for (std::thread& thread : threads) thread.join();
  return first_of(complaints);
}

std::string start_ranks(const Subject& subject, int size, const RankBody& body) {
  std::string name = (std::filesystem::temp_directory_path() / "assay_ranks.XXXXXX").string();
  if (!::mkdtemp(name.data())) throw Error(name + ": cannot be created");
  // comm/thread is the backend whose ranks share a process; every other must work across them.
  const bool threads = subject.entry->manifest.name == "thread";
  const std::string complaint =
      threads ? as_threads(body, size, name) : as_processes(body, size, name);
  std::filesystem::remove_all(name);
  return complaint;
}

GroupSpec group_spec(const char* name, int size, int rank, const std::filesystem::path& folder,
                     int64_t timeout_ns) {
  GroupSpec spec;
  spec.name = name;
  for (int i = 0; i < size; ++i) spec.ranks.push_back(i);
  spec.index = rank;
  spec.rendezvous = folder;
  spec.timeout_ns = timeout_ns;
  return spec;
}

}  // namespace

std::string on_ranks(const Subject& subject, int size,
                     const std::function<void(Communicator&)>& body, int64_t timeout_ns) {
  return start_ranks(subject, size, [&](int rank, const std::filesystem::path& folder) {
    const auto backend = subject.create<CommBackend>();
    const auto group = backend->connect(group_spec("first", size, rank, folder, timeout_ns));
    body(*group);
  });
}

std::string on_two_groups(const Subject& subject, int size,
                          const std::function<void(Communicator&, Communicator&)>& body) {
  constexpr int64_t kTimeout_ns = 60'000'000'000;
  return start_ranks(subject, size, [&](int rank, const std::filesystem::path& folder) {
    const auto backend = subject.create<CommBackend>();
    const auto first = backend->connect(group_spec("first", size, rank, folder, kTimeout_ns));
    const auto second = backend->connect(group_spec("second", size, rank, folder, kTimeout_ns));
    body(*first, *second);
  });
}

}  // namespace assay::conformance
