#include "bindings/numpy_arrays.h"

namespace tfrkit {
namespace {

// Places in the table of functions that NumPy exports to extensions. They are fixed from NumPy 1.7 on: every
// compiled extension has them.
constexpr size_t kArrayType = 2;
constexpr size_t kDescrFromType = 45;
constexpr size_t kNewFromDescr = 94;
constexpr size_t kSetBaseObject = 282;

constexpr int kCArray = 0x0001 | 0x0100 | 0x0400;  // contiguous, aligned, writable

struct NumpyFunctions {
  PyTypeObject* type = nullptr;
  PyObject* (*descr_from_type)(int) = nullptr;
  PyObject* (*new_from_descr)(PyTypeObject*, PyObject*, int, const Py_intptr_t*, const Py_intptr_t*, void*,
                              int, PyObject*) = nullptr;
  int (*set_base_object)(PyObject*, PyObject*) = nullptr;
};

template <class Function>
Function As(void* address) {
  return reinterpret_cast<Function>(address);
}

NumpyFunctions FindFunctions() {
  NumpyFunctions found;
  // NumPy 2 has another name for the module, and warns about the old one.
  for (const char* const name : {"numpy._core.multiarray", "numpy.core.multiarray"}) {
    const nb::object module = nb::steal(PyImport_ImportModule(name));
    if (!module.is_valid()) {
      PyErr_Clear();
      continue;
    }
    const nb::object capsule = nb::steal(PyObject_GetAttrString(module.ptr(), "_ARRAY_API"));
    void** const table =
        capsule.is_valid() ? static_cast<void**>(PyCapsule_GetPointer(capsule.ptr(), nullptr)) : nullptr;
    if (table == nullptr) {
      PyErr_Clear();
      return found;
    }
    found.descr_from_type = As<decltype(found.descr_from_type)>(table[kDescrFromType]);
    found.new_from_descr = As<decltype(found.new_from_descr)>(table[kNewFromDescr]);
    found.set_base_object = As<decltype(found.set_base_object)>(table[kSetBaseObject]);
    found.type = static_cast<PyTypeObject*>(table[kArrayType]);
    return found;
  }
  return found;
}

}  // namespace

nb::object MakeNumpyArray(int type, void* data, size_t size, nb::handle owner) {
  static const NumpyFunctions functions = FindFunctions();
  if (functions.type == nullptr) return {};
  PyObject* const descr = functions.descr_from_type(type);
  if (descr == nullptr) nb::raise_python_error();
  const Py_intptr_t shape[] = {static_cast<Py_intptr_t>(size)};
  // Takes the reference to `descr`.
  nb::object array =
      nb::steal(functions.new_from_descr(functions.type, descr, 1, shape, nullptr, data, kCArray, nullptr));
  if (!array.is_valid()) nb::raise_python_error();
  // Takes the reference to the owner, also where it fails.
  if (functions.set_base_object(array.ptr(), nb::borrow(owner).release().ptr()) != 0)
    nb::raise_python_error();
  return array;
}

}  // namespace tfrkit
