// Runs a fuzz target over every file of the folders given: no clang, no mutation.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "fuzz/fuzz_target.h"

int main(int argc, char** argv) {
  std::vector<std::filesystem::path> paths;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      if (entry.is_regular_file()) paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> chars{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    std::vector<uint8_t> bytes(chars.begin(), chars.end());
    bytes.shrink_to_fit();  // the address sanitizer sees the first byte read past the end
    std::printf("%s\n", path.filename().c_str());
    std::fflush(stdout);  // so that the last line before a crash names its input
    tfrkit::fuzz::FuzzOne({bytes.data(), bytes.size()});
  }
  std::printf("%zu inputs replayed\n", paths.size());
  return paths.empty() ? 1 : 0;
}
