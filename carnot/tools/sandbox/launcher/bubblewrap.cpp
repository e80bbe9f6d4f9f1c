#include <fcntl.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <csignal>
#include <string>
#include <vector>

#include "failure.h"
#include "lock_down.h"
#include "private_root.h"
#include "program.h"

namespace carnot::launcher {
namespace {

constexpr const char* kThisProgram = "/carnot-sandbox";  // as it is called inside

std::string link_at(const std::string& path) {
  char text[PATH_MAX + 1] = {};
  need(::readlink(path.c_str(), text, PATH_MAX) > 0, "read the link " + path);
  return text;
}

using Words = std::vector<std::string>;

void add(Words& words, const Words& more) { words.insert(words.end(), more.begin(), more.end()); }

void show_entry(Words& words, const std::string& path) {
  struct stat entry{};
  if (::lstat(path.c_str(), &entry) != 0) return;
  if (S_ISLNK(entry.st_mode))
    add(words, {"--symlink", link_at(path), path});
  else
    add(words, {"--ro-bind", path, path});
}

/// A file of a few words, which bwrap reads from a pipe.
void write_text(Words& words, const std::string& path, const std::string& text) {
  int ends[2];
  need(::pipe(ends) == 0 && ::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()),
       "write " + path);
  ::close(ends[1]);
  add(words, {"--perms", "0444", "--ro-bind-data", std::to_string(ends[0]), path});
}

Words command_of(const Plan& plan, const std::vector<SharedFolder>& folders) {
  const std::string inside = std::to_string(kInside);
  Words words{plan.bubblewrap, "--unshare-all", "--unshare-user", "--die-with-parent",
              "--new-session", "--as-pid-1",    "--cap-drop",     "ALL",
              "--clearenv",    "--uid",         inside,           "--gid",
              inside,          "--hostname",    "sandbox"};
  for (const std::string& path : system_folders()) show_entry(words, path);
  for (const char* file : {"/etc/ld.so.cache", "/etc/localtime", "/etc/alternatives"}) show_entry(words, file);
  write_text(words, "/etc/passwd", passwd_inside());
  write_text(words, "/etc/group", group_inside());
  for (const char* device : {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"})
    add(words, {"--dev-bind", device, device});
  add(words, {"--symlink", "/tmp", "/dev/shm", "--bind", plan.folder, "/tmp"});
  if (!plan.shown_at.empty()) {
    const std::string inside_folder = plan.folder + plan.shown_at;
    need(::mkdir(inside_folder.c_str(), 0700) == 0, "make " + plan.shown_at);
    add(words, {"--bind", inside_folder, plan.shown_at});
  }
  for (const SharedFolder& folder : beyond_the_system(folders)) add(words, {"--ro-bind", folder.real, folder.name});
  add(words, {"--ro-bind", link_at("/proc/self/exe"), kThisProgram, "--remount-ro", "/", "--chdir", "/tmp", "--"});
  add(words, {kThisProgram, kInsideBubblewrap});
  add(words, plan.arguments);
  return words;
}

}  // namespace

Program start_in_bubblewrap(const Plan& plan) {
  need(::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0, "take over orphans");
  const std::vector<SharedFolder> folders = find_folders(plan);
  int result[2];
  make_pipe(result);
  const pid_t launcher = ::getpid();
  const pid_t child = ::fork();
  need(child >= 0, "start a process");
  if (child == 0)
    run_child([&] {
      need(::setpgid(0, 0) == 0, "make a process group");
      if (::geteuid() == 0)
        need(::chown(plan.folder.c_str(), kNobody, kNobody) == 0 && ::setgroups(0, nullptr) == 0 &&
                 ::setresgid(kNobody, kNobody, kNobody) == 0 && ::setresuid(kNobody, kNobody, kNobody) == 0,
             "become nobody");
      need(::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && ::getppid() == launcher, "die with the launcher");
      need(::dup2(result[1], kResult) == kResult && ::fcntl(kReport, F_SETFD, 0) == 0, "hand over the report");
      ::close(kControl);
      Words words = command_of(plan, folders);
      std::vector<char*> arguments;
      for (std::string& word : words) arguments.push_back(word.data());
      arguments.push_back(nullptr);
      char* no_variables[] = {nullptr};
      ::execve(arguments[0], arguments.data(), no_variables);
      refuse("start " + plan.bubblewrap);
    });
  ::close(result[1]);
  return {.id = child, .result = result[0]};
}

void continue_in_bubblewrap(const Plan& plan) {
  run_child([&] {
    ::umask(0077);
    give_up_rights(kInside);
    lock_down(plan);
    be_first_process(plan, kResult);
  });
}

}  // namespace carnot::launcher
