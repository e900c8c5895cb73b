// What operating systems do differently: files, maps, folders, disks. The only header with such differences;
// the rest of the core and the bindings name no system.
//
// Functions that fail set errno.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tfrkit {

// Differs in a forked child, which has none of its parent's threads.
int ProcessId();

size_t PageSize();

// Size of an open file in bytes; -1 for failure.
int64_t FileSize(int descriptor);

// The first `size` bytes of an open file, read-only and shared; nullptr for failure. Not for an empty file.
const uint8_t* MapFile(int descriptor, size_t size);
void UnmapFile(const uint8_t* start, size_t size);

// Hints that whole pages of a map are not needed for now.
void ForgetPages(uint8_t* start, size_t size);

// Another descriptor of an open file, which child processes do not inherit; -1 for failure.
int DuplicateFile(int descriptor);
void CloseFile(int descriptor);

struct FolderEntry {
  std::string name;  // with a trailing slash for a folder
  bool is_folder = false;
  int64_t nbytes = 0;  // -1 for what is neither a file nor a folder
  int64_t stamp = 0;   // time of change, ns since 1970
};

// errno, 0 for success; in no order. A link counts as what it leads to, one to nowhere as a file without
// bytes.
int ReadFolder(const char* path, std::vector<FolderEntry>* entries);

// Whether only this machine writes to the file system of an open file. False if unknown.
bool IsLocalDisk(int descriptor);

// Writes everything of the file system of an open file to its disk. errno, 0 for success; ENOSYS where the
// system has no such call.
int SyncDisk(int descriptor);

}  // namespace tfrkit
