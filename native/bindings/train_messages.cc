// The bases of the messages of tf.train, as tfrkit.compat has them.
//
// Scripts make two messages per feature and serialize them at once. So what is made in one expression from
// plain values is made here: it is frozen, a list, tuple or dict that messages share and nothing changes.
// Anything else is handed to `_init` of the Python class, which checks values and raises with words.
#include <nanobind/nanobind.h>
#include <structmember.h>

#include <array>
#include <cmath>
#include <cstddef>

#include "bindings/buffers.h"
#include "core/wire/record_types.h"

namespace tfrkit {

namespace {

struct MessageObject {
  PyObject_HEAD PyObject* content;
  PyObject* frozen;  // not set, or None if `content` has the fields
  PyObject* waits_for;
};

// What lives as long as the process: the types, and the names of fields.
struct Known {
  std::array<PyTypeObject*, 3> lists{};  // by kind: bytes, float, int64
  PyTypeObject* feature = nullptr;
  PyTypeObject* features = nullptr;
  std::array<PyObject*, 3> list_names{};
  PyObject* value_name = nullptr;
  PyObject* feature_name = nullptr;
  PyObject* features_name = nullptr;
} known;

MessageObject* AsMessage(PyObject* self) { return static_cast<MessageObject*>(static_cast<void*>(self)); }

int Traverse(PyObject* self, visitproc visit, void* arg) {
  const MessageObject* const message = AsMessage(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(message->content);
  Py_VISIT(message->frozen);
  Py_VISIT(message->waits_for);
  return 0;
}

int Clear(PyObject* self) {
  MessageObject* const message = AsMessage(self);
  Py_CLEAR(message->content);
  Py_CLEAR(message->frozen);
  Py_CLEAR(message->waits_for);
  return 0;
}

void Dealloc(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  Clear(self);
  const auto free_object = reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free));
  free_object(self);
  Py_DECREF(type);
}

int InitSlowly(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject* const init = PyObject_GetAttrString(self, "_init");
  if (init == nullptr) return -1;
  PyObject* const done = PyObject_Call(init, args, kwargs);
  Py_DECREF(init);
  if (done == nullptr) return -1;
  Py_DECREF(done);
  return 0;
}

// Takes over a reference; nullptr is an error that is set.
int Freeze(PyObject* self, PyObject* frozen) {
  if (frozen == nullptr) return -1;
  MessageObject* const message = AsMessage(self);
  PyObject* const frozen_before = std::exchange(message->frozen, frozen);
  PyObject* const waited_before = std::exchange(message->waits_for, Py_NewRef(Py_None));
  Py_XDECREF(frozen_before);
  Py_XDECREF(waited_before);
  return 0;
}

// The content of a frozen message of a type, borrowed; nullptr for anything else.
PyObject* FrozenOf(PyObject* value, PyTypeObject* type) {
  if (!PyObject_TypeCheck(value, type)) return nullptr;
  PyObject* const frozen = AsMessage(value)->frozen;
  return frozen == Py_None ? nullptr : frozen;
}

bool IsName(PyObject* name, PyObject* wanted) {
  return name == wanted || PyUnicode_Compare(name, wanted) == 0;
}

// The only argument, given by name: borrowed.
bool GetOnly(PyObject* args, PyObject* kwargs, PyObject** name, PyObject** value) {
  if (kwargs == nullptr || PyDict_Size(kwargs) != 1 || PyTuple_Size(args) != 0) return false;
  Py_ssize_t position = 0;
  return PyDict_Next(kwargs, &position, name, value) != 0;
}

PyObject* GetOnlyNamed(PyObject* args, PyObject* kwargs, PyObject* wanted) {
  PyObject *name = nullptr, *value = nullptr;
  return GetOnly(args, kwargs, &name, &value) && IsName(name, wanted) ? value : nullptr;
}

// Makes item `i` of a list what a message holds. False if Python has to check it.
template <Kind kKind>
bool CheckItem(PyObject* list, Py_ssize_t i) {
  PyObject* const item = PyList_GetItem(list, i);
  if constexpr (kKind == Kind::kBytes) {
    return PyBytes_CheckExact(item);
  } else if constexpr (kKind == Kind::kInt64) {
    int overflow = 0;
    if (!PyLong_CheckExact(item)) return false;
    PyLong_AsLongLongAndOverflow(item, &overflow);
    return overflow == 0;
  } else {
    if (!PyFloat_CheckExact(item)) return false;
    const double value = PyFloat_AsDouble(item);
    const double stored = static_cast<double>(static_cast<float>(value));
    if (stored == value || std::isnan(value)) return true;
    PyObject* const rounded = PyFloat_FromDouble(stored);
    if (rounded != nullptr && PyList_SetItem(list, i, rounded) == 0) return true;
    PyErr_Clear();  // out of memory, which Python finds out again
    return false;
  }
}

// BytesList, FloatList, Int64List: a list of values.
template <Kind kKind>
int InitList(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject* const given = GetOnlyNamed(args, kwargs, known.value_name);
  if (given == nullptr || !PyList_CheckExact(given)) return InitSlowly(self, args, kwargs);
  const Py_ssize_t count = PyList_Size(given);
  PyObject* const values = PyList_GetSlice(given, 0, count);
  if (values == nullptr) return -1;
  for (Py_ssize_t i = 0; i < PyList_Size(values); ++i) {
    if (!CheckItem<kKind>(values, i)) {
      Py_DECREF(values);
      return InitSlowly(self, args, kwargs);
    }
  }
  return Freeze(self, values);
}

// Feature: (name of the field of its list, values).
int InitFeature(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject *name = nullptr, *value = nullptr;
  if (GetOnly(args, kwargs, &name, &value)) {
    for (size_t i = 0; i < known.lists.size(); ++i) {
      PyObject* const values = FrozenOf(value, known.lists[i]);
      if (values != nullptr && IsName(name, known.list_names[i]))
        return Freeze(self, PyTuple_Pack(2, known.list_names[i], values));
    }
  }
  return InitSlowly(self, args, kwargs);
}

bool IsAscii(PyObject* text) {
  Py_ssize_t size = 0;
  if (!PyUnicode_CheckExact(text)) return false;
  if (PyUnicode_AsUTF8AndSize(text, &size) == nullptr) {
    PyErr_Clear();
    return false;
  }
  return size == PyUnicode_GetLength(text);
}

// Features: a dict of frozen features.
int InitFeatures(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject* const given = GetOnlyNamed(args, kwargs, known.feature_name);
  if (given == nullptr || !PyDict_CheckExact(given)) return InitSlowly(self, args, kwargs);
  PyObject* const frozen = PyDict_Copy(given);  // has room for all names
  if (frozen == nullptr) return -1;
  PyObject *name = nullptr, *value = nullptr;
  Py_ssize_t position = 0;
  while (PyDict_Next(given, &position, &name, &value)) {
    PyObject* const inner = FrozenOf(value, known.feature);
    if (inner == nullptr || !IsAscii(name)) {
      Py_DECREF(frozen);
      return InitSlowly(self, args, kwargs);
    }
    if (PyDict_SetItem(frozen, name, inner) != 0) {
      Py_DECREF(frozen);
      return -1;
    }
  }
  return Freeze(self, frozen);
}

// Example: the dict of its features.
int InitExample(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject* const given = GetOnlyNamed(args, kwargs, known.features_name);
  PyObject* const frozen = given == nullptr ? nullptr : FrozenOf(given, known.features);
  return frozen == nullptr ? InitSlowly(self, args, kwargs) : Freeze(self, Py_NewRef(frozen));
}

constexpr unsigned kFlags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;

PyTypeObject* AddType(nb::module_& m, PyType_Spec spec, PyTypeObject* base) {
  nb::object bases = nb::none();
  if (base != nullptr) bases = nb::make_tuple(nb::handle(static_cast<PyObject*>(static_cast<void*>(base))));
  PyObject* const type = PyType_FromSpecWithBases(&spec, base == nullptr ? nullptr : bases.ptr());
  if (type == nullptr) nb::raise_python_error();
  const std::string_view name = spec.name;
  m.attr(name.substr(name.rfind('.') + 1).data()) = nb::handle(type);
  return static_cast<PyTypeObject*>(static_cast<void*>(type));  // the reference is kept
}

PyTypeObject* AddMessage(nb::module_& m, const char* name, initproc init, PyTypeObject* base) {
  PyType_Slot slots[] = {{Py_tp_init, reinterpret_cast<void*>(init)},
                         {Py_tp_traverse, reinterpret_cast<void*>(Traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(Clear)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(Dealloc)},
                         {0, nullptr}};
  return AddType(m, {name, static_cast<int>(sizeof(MessageObject)), 0, kFlags, slots}, base);
}

PyObject* Intern(const char* name) {
  PyObject* const made = PyUnicode_InternFromString(name);
  if (made == nullptr) nb::raise_python_error();
  return made;
}

}  // namespace

void BindTrainMessages(nb::module_& m) {
  static PyMemberDef members[] = {
      {"_content", T_OBJECT_EX, offsetof(MessageObject, content), 0, "The content of each field by name."},
      {"_frozen", T_OBJECT_EX, offsetof(MessageObject, frozen), 0, "Content that nothing changes, or None."},
      {"_waits_for", T_OBJECT_EX, offsetof(MessageObject, waits_for), 0, "(parent, field), or None."},
      {nullptr, 0, 0, 0, nullptr}};
  PyType_Slot slots[] = {{Py_tp_members, members},
                         {Py_tp_init, reinterpret_cast<void*>(InitSlowly)},
                         {Py_tp_traverse, reinterpret_cast<void*>(Traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(Clear)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(Dealloc)},
                         {0, nullptr}};
  PyTypeObject* const base = AddType(
      m, {"tfrkit._core.MessageBase", static_cast<int>(sizeof(MessageObject)), 0, kFlags, slots}, nullptr);
  known.lists = {AddMessage(m, "tfrkit._core.BytesListBase", InitList<Kind::kBytes>, base),
                 AddMessage(m, "tfrkit._core.FloatListBase", InitList<Kind::kFloat>, base),
                 AddMessage(m, "tfrkit._core.Int64ListBase", InitList<Kind::kInt64>, base)};
  known.feature = AddMessage(m, "tfrkit._core.FeatureBase", InitFeature, base);
  known.features = AddMessage(m, "tfrkit._core.FeaturesBase", InitFeatures, base);
  AddMessage(m, "tfrkit._core.ExampleBase", InitExample, base);
  known.list_names = {Intern("bytes_list"), Intern("float_list"), Intern("int64_list")};
  known.value_name = Intern("value");
  known.feature_name = Intern("feature");
  known.features_name = Intern("features");
}

}  // namespace tfrkit
