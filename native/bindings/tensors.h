// Tensors of a framework over memory of the core, by the C functions that DLPack names
// `__dlpack_c_exchange_api__`. A tensor costs half as much as by an array, or by a capsule.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/base/pool.h"

namespace tfrkit {

namespace nb = nanobind;

struct TensorVersion {
  uint32_t major;
  uint32_t minor;
};

// DLPackExchangeAPI: the functions of a framework.
struct TensorExchange {
  TensorVersion version;
  const TensorExchange* previous;  // the same of an older version, or nullptr
  void* allocate;
  void* export_tensor;
  // Takes ownership of a DLManagedTensorVersioned; not 0 where a Python exception is set.
  int (*import_tensor)(void* tensor, void** object);
};

// What this file speaks; minor versions only add.
constexpr TensorVersion kTensorVersion{1, 0};

// The functions in a capsule, in the version known here; nullptr if the framework has others only. They live
// as long as the framework.
inline const TensorExchange* FindExchange(nb::handle capsule) {
  const auto* found =
      static_cast<const TensorExchange*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  if (found == nullptr) nb::raise_python_error();
  while (found != nullptr && found->version.major != kTensorVersion.major) found = found->previous;
  return found;
}

// A DLManagedTensorVersioned, and after it what it points to.
struct TensorHolder {
  TensorVersion version = kTensorVersion;
  void* context = nullptr;
  // Needs no interpreter lock. The holder is part of its owner.
  void (*deleter)(TensorHolder*) = [](TensorHolder* self) { const auto owner = std::move(self->owner); };
  uint64_t flags = 0;  // it may be written to
  nb::dlpack::dltensor tensor{};
  std::shared_ptr<void> owner;
  int64_t size = 0;
  int64_t stride = 1;
};

// A one-dimensional tensor over memory of `owner`, which `holder` is part of, too.
template <class T>
nb::object MakeTensor(T* data, size_t size, TensorHolder* holder, std::shared_ptr<void> owner,
                      const TensorExchange& exchange) {
  holder->owner = std::move(owner);
  holder->size = static_cast<int64_t>(size);
  holder->tensor.data = data;
  holder->tensor.device = {nb::device::cpu::value, 0};
  holder->tensor.ndim = 1;
  holder->tensor.dtype = nb::dtype<T>();
  holder->tensor.shape = &holder->size;
  holder->tensor.strides = &holder->stride;
  void* object = nullptr;
  if (exchange.import_tensor(holder, &object) != 0) nb::raise_python_error();
  return nb::steal(static_cast<PyObject*>(object));
}

template <class T>
nb::object ToTensor(PoolVector<T>&& values, const TensorExchange& exchange) {
  struct Owner {
    PoolVector<T> values;
    TensorHolder holder;
  };
  const auto owner = std::make_shared<Owner>();
  owner->values = std::move(values);
  return MakeTensor(owner->values.data(), owner->values.size(), &owner->holder, owner, exchange);
}

}  // namespace tfrkit
