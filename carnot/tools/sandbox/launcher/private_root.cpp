#include "private_root.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>

#include "failure.h"

namespace carnot::launcher {
namespace {

// The old root and the new one, beneath a third that exists only while the new one is built.
const std::string kOld = "/old", kNew = "/new";

void mount_memory(const std::string& at, const std::string& options) {
  need(::mount("tmpfs", at.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, options.c_str()) == 0, "mount memory at " + at);
}

void set_attributes(const std::string& at, std::uint64_t attributes, unsigned flags) {
  mount_attr wanted{};
  wanted.attr_set = attributes;
  need(::syscall(SYS_mount_setattr, AT_FDCWD, at.c_str(), flags, &wanted, sizeof wanted) == 0,
       "restrict the mount at " + at);
}

void make_folders(const std::string& path) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1))
    (void)::mkdir(path.substr(0, slash).c_str(), 0755);
  (void)::mkdir(path.c_str(), 0755);
}

void bind_read_only(const std::string& source, const std::string& target) {
  need(::mount(source.c_str(), target.c_str(), nullptr, MS_BIND | MS_REC, nullptr) == 0, "show " + target);
  set_attributes(target, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, AT_RECURSIVE);
}

void touch(const std::string& path) {
  const int fd = ::open(path.c_str(), O_CREAT | O_CLOEXEC | O_WRONLY, 0644);
  need(fd >= 0, "make " + path);
  ::close(fd);
}

void write_text(const std::string& path, const std::string& text) {
  const int fd = ::open(path.c_str(), O_CREAT | O_TRUNC | O_CLOEXEC | O_WRONLY, 0644);
  need(fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()), "write " + path);
  ::close(fd);
}

/// Shows a file, a folder or a symbolic link of the old root; nothing if it has none.
void show_entry(const std::string& path) {
  struct stat entry{};
  if (::lstat((kOld + path).c_str(), &entry) != 0) return;
  const std::string target = kNew + path;
  if (S_ISLNK(entry.st_mode)) {
    char text[PATH_MAX + 1] = {};
    need(::readlink((kOld + path).c_str(), text, PATH_MAX) > 0 && ::symlink(text, target.c_str()) == 0, "link " + path);
    return;
  }
  if (S_ISDIR(entry.st_mode))
    make_folders(target);
  else
    touch(target);
  bind_read_only(kOld + path, target);
}

void show_device(const std::string& path) {
  touch(kNew + path);
  need(::mount((kOld + path).c_str(), (kNew + path).c_str(), nullptr, MS_BIND, nullptr) == 0, "show " + path);
  set_attributes(kNew + path, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, 0);
}

bool is_within(const std::string& path, const std::string& folder) {
  return path == folder || (path.starts_with(folder) && path[folder.size()] == '/');
}

const std::vector<std::string> kSystem{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};

/// Those that are not within a system's folder or one before them.
std::vector<SharedFolder> beyond_the_system(const std::vector<SharedFolder>& folders) {
  std::vector<std::string> shown = kSystem;
  std::vector<SharedFolder> beyond;
  for (const SharedFolder& folder : folders) {
    if (std::any_of(shown.begin(), shown.end(), [&](const auto& one) { return is_within(folder.name, one); })) continue;
    beyond.push_back(folder);
    shown.push_back(folder.name);
  }
  return beyond;
}

void show_folders(const std::vector<SharedFolder>& folders) {
  for (const auto& [name, real] : beyond_the_system(folders)) {
    make_folders(kNew + name);
    bind_read_only(kOld + real, kNew + name);
  }
}

/// A folder of the private one under its own name: /testbed is /tmp/testbed.
void show_private_folder(const std::string& path, uid_t owner) {
  const std::string inside = kNew + "/tmp" + path;
  need(::mkdir(inside.c_str(), 0700) == 0 && ::chown(inside.c_str(), owner, owner) == 0, "make " + path);
  make_folders(kNew + path);
  need(::mount(inside.c_str(), (kNew + path).c_str(), nullptr, MS_BIND, nullptr) == 0, "show " + path);
}

std::string passwd_inside() {
  const std::string number = std::to_string(kInside);
  return "sandbox:x:" + number + ":" + number + "::/tmp:/bin/sh\n";
}

std::string group_inside() { return "sandbox:x:" + std::to_string(kInside) + ":\n"; }

void build_new_root(const Plan& plan, const std::vector<SharedFolder>& folders, uid_t owner) {
  mount_memory(kNew, "size=1m,mode=0755");
  for (const std::string& path : kSystem) show_entry(path);
  make_folders(kNew + "/etc");
  for (const char* file : {"/etc/ld.so.cache", "/etc/localtime", "/etc/alternatives"}) show_entry(file);
  write_text(kNew + "/etc/passwd", passwd_inside());
  write_text(kNew + "/etc/group", group_inside());
  make_folders(kNew + "/dev");
  for (const char* device : {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}) show_device(device);
  need(::symlink("/tmp", (kNew + "/dev/shm").c_str()) == 0, "link /dev/shm");
  make_folders(kNew + "/tmp");
  const std::string user = std::to_string(owner);
  mount_memory(kNew + "/tmp", "size=" + std::to_string(plan.disk) + ",nr_inodes=" + std::to_string(kMostEntries) +
                                  ",mode=0700,uid=" + user + ",gid=" + user);
  if (!plan.shown_at.empty()) show_private_folder(plan.shown_at, owner);
  show_folders(folders);  // some may be in /tmp
  set_attributes(kNew, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0);
}

int pivot_root(const char* root, const char* old) { return static_cast<int>(::syscall(SYS_pivot_root, root, old)); }

}  // namespace

std::vector<SharedFolder> find_folders(const Plan& plan) {
  std::vector<SharedFolder> folders;
  for (const std::string& name : plan.read) {
    char* real = ::realpath(name.c_str(), nullptr);
    need(real != nullptr, "find " + name);
    folders.push_back({.name = name, .real = real});
    if (folders.back().real != name) folders.push_back({.name = real, .real = real});
    std::free(real);
  }
  return folders;
}

void enter_private_root(const Plan& plan, const std::vector<SharedFolder>& folders, uid_t owner) {
  ::umask(0022);
  need(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "detach from the system's mounts");
  mount_memory("/tmp", "size=1m,mode=0755");
  need(::mkdir(("/tmp" + kOld).c_str(), 0755) == 0 && ::mkdir(("/tmp" + kNew).c_str(), 0755) == 0, "make two folders");
  need(pivot_root("/tmp", ("/tmp" + kOld).c_str()) == 0 && ::chdir("/") == 0, "leave the system's root");
  build_new_root(plan, folders, owner);
  // The new root over the old one, which is then beneath it and can be taken away.
  need(::chdir(kNew.c_str()) == 0 && pivot_root(".", ".") == 0 && ::umount2(".", MNT_DETACH) == 0 &&
           ::chdir("/tmp") == 0,
       "enter the private root");
  ::umask(0077);
}

}  // namespace carnot::launcher
