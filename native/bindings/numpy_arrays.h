// NumPy arrays over memory of the core, made by NumPy's own C functions.
//
// nanobind makes an array in three steps through Python (an object with a buffer, a call of numpy.array, the
// array), a microsecond each time. A batch has an array for each column, all of them made by the one thread
// that takes batches, so this is what limits 16 threads.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <type_traits>
#include <utility>

#include "bindings/buffers.h"

namespace tfrkit {

// NumPy's numbers of types: part of its stable binary interface.
template <class T>
constexpr int NumpyType() {
  if constexpr (std::is_same_v<T, uint8_t>) return 2;
  if constexpr (std::is_same_v<T, float>) return 11;
  // C has two types of 64 bits; NumPy's int64 is `long` where that has them.
  if constexpr (std::is_same_v<T, int64_t>) return sizeof(long) == 8 ? 7 : 9;
  return -1;
}

// A one-dimensional array that may be written to and holds `owner`; an invalid object where this NumPy has no
// such functions. `data` must be valid as long as `owner` lives.
nb::object MakeNumpyArray(int type, void* data, size_t size, nb::handle owner);

// The same of numbers.
template <class T>
nb::object ViewArray(T* data, size_t size, nb::handle owner) {
  static_assert(NumpyType<T>() >= 0);
  nb::object array = MakeNumpyArray(NumpyType<T>(), data, size, owner);
  if (array.is_valid()) return array;
  return nb::cast(Array<T>(data, {size}, owner));
}

// A capsule that owns the values.
template <class T>
nb::capsule HoldValues(PoolVector<T>* owned) {
  return nb::capsule(owned, [](void* p) noexcept { delete static_cast<PoolVector<T>*>(p); });
}

// An array that owns the values.
template <class T>
nb::object WrapArray(PoolVector<T>&& values) {
  if (values.empty()) return nb::cast(ToArray(std::move(values)));
  auto* owned = new PoolVector<T>(std::move(values));
  return ViewArray(owned->data(), owned->size(), HoldValues(owned));
}

}  // namespace tfrkit
