// For `make cross`; never run by us.
#if defined(_WIN32)

#define WIN32_LEAN_AND_MEAN
#define NOMINMAX
#include <io.h>
#include <windows.h>

#include <cerrno>
#include <cstdlib>

#include "os/platform.h"

namespace tfrkit {

namespace {

HANDLE HandleOf(int descriptor) { return reinterpret_cast<HANDLE>(_get_osfhandle(descriptor)); }

std::wstring Widen(const char* text) {
  const int count = MultiByteToWideChar(CP_UTF8, 0, text, -1, nullptr, 0);
  std::wstring wide(count > 0 ? static_cast<size_t>(count) - 1 : 0, L'\0');
  if (!wide.empty()) MultiByteToWideChar(CP_UTF8, 0, text, -1, wide.data(), count);
  return wide;
}

std::string Narrow(const wchar_t* text) {
  const int count = WideCharToMultiByte(CP_UTF8, 0, text, -1, nullptr, 0, nullptr, nullptr);
  std::string narrow(count > 0 ? static_cast<size_t>(count) - 1 : 0, '\0');
  if (!narrow.empty()) WideCharToMultiByte(CP_UTF8, 0, text, -1, narrow.data(), count, nullptr, nullptr);
  return narrow;
}

}  // namespace

int ProcessId() { return static_cast<int>(GetCurrentProcessId()); }

size_t PageSize() {
  SYSTEM_INFO info;
  GetSystemInfo(&info);
  return info.dwPageSize;
}

int64_t FileSize(int descriptor) {
  LARGE_INTEGER size;
  if (GetFileSizeEx(HandleOf(descriptor), &size)) return size.QuadPart;
  errno = EBADF;
  return -1;
}

// The file itself can be neither shortened nor replaced while it is mapped, so a map is never torn.
const uint8_t* MapFile(int descriptor, size_t size) {
  const HANDLE mapping = CreateFileMappingW(HandleOf(descriptor), nullptr, PAGE_READONLY, 0, 0, nullptr);
  void* const data = mapping == nullptr ? nullptr : MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, size);
  if (mapping != nullptr) CloseHandle(mapping);  // the view keeps it
  if (data == nullptr) errno = EACCES;
  return static_cast<const uint8_t*>(data);
}

void UnmapFile(const uint8_t* start, size_t) { UnmapViewOfFile(start); }

// Unlocking pages that are not locked removes them from the working set.
void ForgetPages(uint8_t* start, size_t size) { VirtualUnlock(start, size); }

int DuplicateFile(int descriptor) { return _dup(descriptor); }

void CloseFile(int descriptor) { _close(descriptor); }

int ReadFolder(const char* path, std::vector<FolderEntry>* entries) {
  WIN32_FIND_DATAW found;
  const HANDLE search = FindFirstFileExW((Widen(path) + L"\\*").c_str(), FindExInfoBasic, &found,
                                         FindExSearchNameMatch, nullptr, FIND_FIRST_EX_LARGE_FETCH);
  if (search == INVALID_HANDLE_VALUE) return GetLastError() == ERROR_ACCESS_DENIED ? EACCES : ENOENT;
  do {
    std::string name = Narrow(found.cFileName);
    if (name == "." || name == "..") continue;
    FolderEntry& entry = entries->emplace_back();
    entry.is_folder = (found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
    entry.name = std::move(name);
    if (entry.is_folder) entry.name += '/';
    entry.nbytes = static_cast<int64_t>(uint64_t{found.nFileSizeHigh} << 32 | found.nFileSizeLow);
    const FILETIME& time = found.ftLastWriteTime;
    // Counted in 100 ns since 1601.
    const int64_t ticks = static_cast<int64_t>(uint64_t{time.dwHighDateTime} << 32 | time.dwLowDateTime);
    entry.stamp = (ticks - 116'444'736'000'000'000) * 100;
  } while (FindNextFileW(search, &found));
  FindClose(search);
  return 0;
}

bool IsLocalDisk(int) { return false; }

int SyncDisk(int) { return ENOSYS; }

}  // namespace tfrkit

#endif
