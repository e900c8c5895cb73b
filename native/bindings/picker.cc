// `records[number]` as one call: the base of the Python class that knows the shards.
//
// A plain C type and not one of nanobind's, because the class that inherits from it is a Sequence too, and
// two metaclasses do not go together. What it does not know (slices, odd types, a shard that is not open, a
// record with a fault) it hands to the method `_get` of that class.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <exception>
#include <new>
#include <vector>

#include "bindings/frame_table.h"

namespace tfrkit {

namespace {

struct Picks {
  std::vector<uint64_t> starts;         // number of the first record of each shard, and of all
  std::vector<nb::object> tables;       // FrameTable, or none
  std::vector<const FrameTable*> open;  // the same, for speed; nullptr for none
};

struct Picker {
  PyObject_HEAD Picks* picks;
};

PyTypeObject* g_picker_type = nullptr;

Picks& PicksOf(nb::handle self) {
  if (!PyObject_TypeCheck(self.ptr(), g_picker_type)) throw nb::type_error("expected a RecordPicker");
  return *reinterpret_cast<Picker*>(self.ptr())->picks;
}

// A new reference, or nullptr without an error if it must be asked for otherwise.
PyObject* PickQuickly(const Picks& picks, PyObject* key) {
  int overflow = 0;
  int64_t number = PyLong_AsLongLongAndOverflow(key, &overflow);
  if (overflow != 0 || picks.starts.empty()) return nullptr;
  const int64_t count = static_cast<int64_t>(picks.starts.back());
  if (number < 0) number += count;
  if (number < 0 || number >= count) return nullptr;
  const uint64_t wanted = static_cast<uint64_t>(number);
  size_t shard = 0;
  if (picks.open.size() > 1) {
    const auto after = std::upper_bound(picks.starts.begin(), picks.starts.end(), wanted);
    shard = static_cast<size_t>(after - picks.starts.begin()) - 1;
  }
  const FrameTable* const table = picks.open[shard];
  if (table == nullptr || wanted - picks.starts[shard] >= table->size()) return nullptr;
  nb::object record = table->Read(wanted - picks.starts[shard]);
  return PyBytes_CheckExact(record.ptr()) ? record.release().ptr() : nullptr;
}

PyObject* GetItem(PyObject* self, PyObject* key) {
  try {
    if (PyLong_CheckExact(key)) {
      const nb::ft_object_guard lock{nb::handle(self)};
      if (PyObject* record = PickQuickly(*reinterpret_cast<Picker*>(self)->picks, key)) return record;
    }
    return nb::handle(self).attr("_get")(nb::handle(key)).release().ptr();
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

PyObject* New(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* const self = PyType_GenericAlloc(type, 0);
  if (self == nullptr) return nullptr;
  auto* picks = new (std::nothrow) Picks;
  if (picks == nullptr) {
    Py_DECREF(self);
    return PyErr_NoMemory();
  }
  reinterpret_cast<Picker*>(self)->picks = picks;
  return self;
}

void Free(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  delete reinterpret_cast<Picker*>(self)->picks;
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

PyType_Slot g_slots[] = {{Py_tp_new, reinterpret_cast<void*>(New)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(Free)},
                         {Py_mp_subscript, reinterpret_cast<void*>(GetItem)},
                         {Py_tp_doc, const_cast<char*>("Records by number; asks `_get` for the rest.")},
                         {0, nullptr}};
PyType_Spec g_spec = {"tfrkit._core.RecordPicker", sizeof(Picker), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, g_slots};

}  // namespace

void BindPicker(nb::module_& m) {
  nb::object type = nb::steal(PyType_FromSpec(&g_spec));
  if (!type.is_valid()) nb::raise_python_error();
  g_picker_type = reinterpret_cast<PyTypeObject*>(type.ptr());
  m.attr("RecordPicker") = type;
  nb::cpp_function_def(
      [](nb::handle self, const std::vector<uint64_t>& starts) {
        const nb::ft_object_guard lock{self};
        Picks& picks = PicksOf(self);
        picks.starts = starts;
        picks.tables.assign(starts.empty() ? 0 : starts.size() - 1, nb::none());
        picks.open.assign(picks.tables.size(), nullptr);
      },
      nb::scope(type), nb::name("set_starts"), nb::is_method(), nb::arg("starts"),
      nb::sig("def set_starts(self, starts: typing.Sequence[int]) -> None"),
      "Set the number of the first record of each shard, and the number of all records.");
  nb::cpp_function_def(
      [](nb::handle self, size_t shard, nb::object table) {
        const nb::ft_object_guard lock{self};
        Picks& picks = PicksOf(self);
        if (shard >= picks.open.size()) throw nb::index_error("no such shard");
        picks.open[shard] = table.is_none() ? nullptr : nb::cast<const FrameTable*>(table);
        picks.tables[shard] = std::move(table);
      },
      nb::scope(type), nb::name("set_table"), nb::is_method(), nb::arg("shard"), nb::arg("table").none(),
      nb::sig("def set_table(self, shard: int, table: FrameTable | None) -> None"),
      "Read the records of a shard from this table; None: ask `_get` for them.");
}

}  // namespace tfrkit
