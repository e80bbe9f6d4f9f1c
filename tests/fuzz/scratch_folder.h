// tests/fuzz/scratch_folder.h -- a folder of this process, for parsers that read files.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace carnot::fuzz {

class ScratchFolder {
 public:
  explicit ScratchFolder(const std::string& name)
      : folder_(std::filesystem::temp_directory_path() / ("carnot_fuzz_" + name + "_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return folder_; }

  std::filesystem::path write(const std::string& name, std::string_view content) const {
    const std::filesystem::path file = folder_ / name;
    std::ofstream(file, std::ios::binary) << content;
    return file;
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace carnot::fuzz
