#: files_outside -> ok
for path in (outside["secret"], "/etc/shadow", "/etc/ssh/sshd_config", "/etc/hosts", "/root/.bashrc"):
    try:
        with open(path) as file:
            escaped(path)
    except OSError:
        pass

#: folders_outside -> ok
for path in ("/", "/root", "/home", "/var", os.path.dirname(outside["secret"])):
    try:
        found = os.listdir(path)
    except OSError:
        continue
    for name in found:
        if name not in ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc", "dev", "tmp"):
            escaped(path + " " + name)

#: write_outside -> ok
for folder in (outside["writable"], "/usr/lib", "/etc", "/dev", "/", "/var/tmp", "/dev/shm/../../usr"):
    try:
        with open(os.path.join(folder, "written"), "w"):
            escaped(folder)
    except OSError:
        pass

#: symbolic_link -> ok
for target in (outside["secret"], "../../../../.." + outside["secret"], "/proc/1/root" + outside["secret"]):
    os.symlink(target, "link")
    try:
        with open("link") as file:
            escaped(file.read())
    except OSError:
        pass
    os.unlink("link")

#: hard_link -> error refused
os.link(outside["secret"], "link")
escaped()

#: change_files_outside -> error refused
try_each(lambda: os.truncate(outside["secret"], 0), lambda: os.chmod(outside["secret"], 0o777),
         lambda: os.utime(outside["secret"], (1, 1)), lambda: os.rename(outside["secret"], "stolen"),
         lambda: os.unlink(outside["secret"]), lambda: os.rmdir(outside["writable"]))

#: change_the_interpreter -> error refused
try_each(lambda: open(os.__file__, "a"), lambda: os.rename(os.__file__, os.__file__ + "x"), lambda: os.chmod("/usr", 0o777))
