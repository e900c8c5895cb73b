// Runs every test, or those whose "Suite.Name" contains the first argument.
#include <cstdio>
#include <cstring>
#include <string>

#include "tests/check.h"

namespace tfrkit::test {
namespace {

bool g_case_failed = false;

}  // namespace

std::vector<Case>& Cases() {
  static std::vector<Case> cases;
  return cases;
}

void RecordFailure(const char* file, int line, const std::string& what) {
  g_case_failed = true;
  const char* slash = std::strrchr(file, '/');
  std::printf("  %s:%d: %s\n", slash == nullptr ? file : slash + 1, line, what.c_str());
}

int RunAll(const char* filter) {
  int num_passed = 0, num_failed = 0;
  for (const Case& test : Cases()) {
    const std::string name = std::string(test.suite) + "." + test.name;
    if (name.find(filter) == std::string::npos) continue;
    g_case_failed = false;
    test.run();
    if (g_case_failed) std::printf("FAILED %s\n", name.c_str());
    ++(g_case_failed ? num_failed : num_passed);
  }
  std::printf("%d passed, %d failed\n", num_passed, num_failed);
  return num_failed == 0 && num_passed > 0 ? 0 : 1;
}

}  // namespace tfrkit::test

int main(int argc, char** argv) { return tfrkit::test::RunAll(argc > 1 ? argv[1] : ""); }
