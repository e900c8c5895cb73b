// Arrow's C data interface and C stream interface, as its specification lays them out. They are ABI: programs
// that have never heard of each other pass these structs around, and no Arrow header or library is needed.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

extern "C" {

struct ArrowSchema {
  const char* format;    // the type: "l" is int64, "+L" a list with 64-bit offsets
  const char* name;      // UTF-8
  const char* metadata;  // pairs of length-prefixed strings, or null
  int64_t flags;
  int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);  // null once released, or moved elsewhere
  void* private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;  // the first is the validity bitmap, or null where every value is there
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};

struct ArrowArrayStream {
  // These return 0 or an errno. The end of the stream is an array that is released already.
  int (*get_schema)(ArrowArrayStream*, ArrowSchema*);
  int (*get_next)(ArrowArrayStream*, ArrowArray*);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};

}  // extern "C"

namespace tfrkit {

void BindArrow(nanobind::module_& m);

}  // namespace tfrkit
