// Talks to template processes over SOCK_SEQPACKET sockets (protocol: core/worker/template.h).
#include "core/host/template_launcher.h"

#include <csignal>
#include <utility>

#include "core/base/worker_protocol.h"

namespace assay::host {
namespace {

constexpr int kSocketFd = 3;

UniqueFd start_template(ChildWatcher& children, const std::filesystem::path& executable) {
  auto [ours, theirs] = message_pair();
  const pid_t pid =
      spawn_process({.executable = executable,
                     .arguments = {"template", "--socket-fd", std::to_string(kSocketFd)},
                     .fds = {{kSocketFd, theirs.get()}}});
  children.watch(pid, [](int) {});  // its end shows on the socket
  return std::move(ours);
}

}  // namespace

TemplateLauncher::TemplateLauncher(boost::asio::io_context& io, ChildWatcher& children,
                                   const std::filesystem::path& executable,
                                   const std::vector<std::string>& plugins)
    : io_(io),
      exec_(io, children, executable),
      socket_(io, start_template(children, executable).release()) {
  send_message(socket_.native_handle(), {{"load", {{"plugins", plugins}}}});
  read();
}

TemplateLauncher::~TemplateLauncher() = default;

void TemplateLauncher::launch(RankLaunch launch, LaunchCallbacks callbacks) {
  if (state_ == State::failed) {
    exec_.launch(std::move(launch), std::move(callbacks));
  } else if (state_ == State::loading) {
    waiting_.emplace_back(std::move(launch), std::move(callbacks));
  } else {
    spawn(std::move(launch), std::move(callbacks));
  }
}

void TemplateLauncher::spawn(RankLaunch launch, LaunchCallbacks callbacks) {
  const int64_t id = next_id_++;
  const int fds[] = {launch.out.get(), launch.err.get(), launch.events.get()};
  const nlohmann::json request = {
      {"spawn", {{"id", id}, {"cell", launch.cell_file.string()}, {"rank", launch.rank}}}};
  send_message(socket_.native_handle(), request, fds);  // a dead template shows in read()
  ranks_.emplace(id, Rank{std::move(launch), std::move(callbacks)});
}

void TemplateLauncher::read() {
  socket_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                     [this](const boost::system::error_code& error) {
                       if (error) return;
                       while (auto message = receive_message(socket_.native_handle(), false)) {
                         if (message->end) return fail();
                         handle(message->body);
                         if (state_ == State::failed) return;
                       }
                       read();
                     });
}

void TemplateLauncher::handle(const nlohmann::json& message) {
  if (message.contains("error")) return fail();
  if (message.contains("loaded")) {
    state_ = State::ready;
    for (auto& [launch, callbacks] : std::exchange(waiting_, {})) {
      spawn(std::move(launch), std::move(callbacks));
    }
    return;
  }
  for (const auto& [kind, body] : message.items()) answer(kind, body);
}

void TemplateLauncher::answer(const std::string& kind, const nlohmann::json& body) {
  const auto found = ranks_.find(body.value("id", int64_t{0}));
  if (found == ranks_.end()) return;
  if (kind == "spawned") {
    found->second.started = true;
    found->second.launch = {};
    found->second.callbacks.started(body.at("pid").get<pid_t>());
    return;
  }
  Rank rank = std::move(found->second);
  ranks_.erase(found);
  if (kind == "exited") {
    rank.callbacks.exited(body.at("status").get<int>());
  } else {
    exec_.launch(std::move(rank.launch), std::move(rank.callbacks));
  }
}

void TemplateLauncher::fail() {
  state_ = State::failed;
  for (auto& [launch, callbacks] : std::exchange(waiting_, {})) {
    exec_.launch(std::move(launch), std::move(callbacks));
  }
  for (auto& [id, rank] : std::exchange(ranks_, {})) {
    if (rank.started) {
      rank.callbacks.exited(kStatusLost);  // PDEATHSIG took it along
    } else {
      exec_.launch(std::move(rank.launch), std::move(rank.callbacks));
    }
  }
}

TemplatePool::TemplatePool(boost::asio::io_context& io, ChildWatcher& children,
                           std::filesystem::path executable, size_t kept)
    : io_(io), children_(children), executable_(std::move(executable)), kept_(kept) {}

Launcher& TemplatePool::launcher(const std::vector<std::string>& plugins) {
  for (auto entry = templates_.begin(); entry != templates_.end(); ++entry) {
    if (entry->plugins != plugins) continue;
    templates_.splice(templates_.begin(), templates_, entry);
    return *templates_.front().launcher;
  }
  if (templates_.size() >= kept_) drop_idle();
  templates_.push_front(
      {plugins, std::make_unique<TemplateLauncher>(io_, children_, executable_, plugins)});
  return *templates_.front().launcher;
}

void TemplatePool::drop_idle() {
  for (auto entry = templates_.end(); entry != templates_.begin();) {
    --entry;
    if (!entry->launcher->idle()) continue;
    templates_.erase(entry);
    return;
  }
}

}  // namespace assay::host
