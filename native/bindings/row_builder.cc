// Records in, rows out: dicts of Python values, made without a Python step for each row or feature.
//
// Columns that only Python can make values of (serialized tensors, raw arrays) are handed to a callable as a
// ColumnBuilder would hand them over; the others never become columns of Python.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/columns.h"
#include "bindings/numpy_arrays.h"

namespace tfrkit {

namespace {

// How the values of a column become the values of rows. Numbers come as NumPy arrays wherever there may be
// several.
enum class Form {
  kValue,       // one value a row
  kArray,       // the same number of values in every row
  kVarying,     // any number of values a row
  kFrames,      // a feature list, all frames of one size
  kFrameLists,  // a feature list, frames of any size
  kPython,      // whatever the callable makes
};

Form ParseForm(std::string_view name) {
  if (name == "value") return Form::kValue;
  if (name == "array") return Form::kArray;
  if (name == "varying") return Form::kVarying;
  if (name == "frames") return Form::kFrames;
  if (name == "frame_lists") return Form::kFrameLists;
  if (name == "python") return Form::kPython;
  throw nb::value_error("a form is 'value', 'array', 'varying', 'frames', 'frame_lists' or 'python'");
}

nb::object Own(PyObject* object) {
  if (object == nullptr) nb::raise_python_error();
  return nb::steal(object);
}

nb::object Slice(const nb::object& array, int64_t start, int64_t stop) {
  return Own(PySequence_GetSlice(array.ptr(), start, stop));
}

// What is known of a column before any record.
struct Field {
  nb::object name;
  bool is_list = false;
  Kind kind = Kind::kInt64;
  Form form = Form::kPython;
  nb::object shape;      // of a row's values, of a frame's; None for no dimensions or one that varies
  nb::object dtype;      // that numbers are cast to; None for int64 and float32
  bool is_bare = false;  // kVarying: one value stands for itself, without a list
  int64_t length = -1;
};

// The values of a column of one run.
class Values {
 public:
  Values(const Field& field, Column&& column, std::vector<nb::object>&& objects, size_t num_rows)
      : field_(field), column_(std::move(column)), objects_(std::move(objects)), num_rows_(num_rows) {
    ints_ = column_.ints.data();
    floats_ = column_.floats.data();
    if (field_.form == Form::kValue && field_.kind != Kind::kBytes && !field_.dtype.is_none())
      list_ = Array().attr("tolist")();
  }

  // A column that Python made values of.
  Values(const Field& field, nb::object list) : field_(field), num_rows_(0), list_(std::move(list)) {}

  bool may_be_absent() const { return field_.form == Form::kPython || !column_.presence.empty(); }

  // The value of a row, once; not valid where the row has none. Calls for one row after the other.
  nb::object Take(size_t row, nb::handle missing) {
    if (!column_.presence.empty()) {
      const auto presence = static_cast<Presence>(column_.presence[row]);
      if (presence == Presence::kAbsent) return {};
      if (presence == Presence::kUnset) return nb::none();
    }
    switch (field_.form) {
      case Form::kValue:
        return One(row);
      case Form::kArray:
        if (field_.kind == Kind::kBytes) return List(row * field_.length, (row + 1) * field_.length);
        return Own(PySequence_GetItem(Shaped(num_rows_).ptr(), static_cast<Py_ssize_t>(row)));
      case Form::kVarying: {
        const int64_t start = column_.splits[row], stop = column_.splits[row + 1];
        return field_.is_bare && stop - start == 1 ? One(start) : Some(start, stop);
      }
      case Form::kFrames:
        return TakeFrames(column_.list_splits[row], column_.list_splits[row + 1]);
      case Form::kFrameLists:
        return TakeFrameLists(column_.list_splits[row], column_.list_splits[row + 1]);
      default: {
        nb::object value = Own(PySequence_GetItem(list_.ptr(), static_cast<Py_ssize_t>(row)));
        return value.is(missing) ? nb::object() : value;
      }
    }
  }

 private:
  nb::object One(size_t index) {
    if (field_.kind == Kind::kBytes) return std::move(objects_[index]);
    if (!field_.dtype.is_none()) {
      if (!list_.is_valid()) list_ = Array().attr("tolist")();
      return Own(PySequence_GetItem(list_.ptr(), static_cast<Py_ssize_t>(index)));
    }
    if (field_.kind == Kind::kInt64) return Own(PyLong_FromLongLong(ints_[index]));
    return Own(PyFloat_FromDouble(static_cast<double>(floats_[index])));
  }

  nb::object Some(int64_t start, int64_t stop) {
    return field_.kind == Kind::kBytes ? List(start, stop) : Slice(Array(), start, stop);
  }

  nb::object List(int64_t start, int64_t stop) {
    nb::object list = Own(PyList_New(stop - start));
    for (int64_t i = start; i < stop; ++i) {
      PyList_SetItem(list.ptr(), i - start, objects_[static_cast<size_t>(i)].release().ptr());
    }
    return list;
  }

  nb::object TakeFrames(int64_t start, int64_t stop) {
    if (field_.kind != Kind::kBytes)
      return Slice(Shaped(static_cast<size_t>(column_.list_splits[num_rows_])), start, stop);
    if (field_.shape.is_none()) return List(start, stop);
    nb::list frames;
    for (int64_t i = start; i < stop; ++i) frames.append(List(i * field_.length, (i + 1) * field_.length));
    return frames;
  }

  nb::object TakeFrameLists(int64_t start, int64_t stop) {
    nb::list frames;
    for (int64_t i = start; i < stop; ++i) {
      const bool is_unset = !column_.frame_presence.empty() &&
                            static_cast<Presence>(column_.frame_presence[i]) == Presence::kUnset;
      frames.append(is_unset ? nb::none() : Some(column_.splits[i], column_.splits[i + 1]));
    }
    return frames;
  }

  // All numbers of the column, made when something asks for them. The numbers stay where they are.
  const nb::object& Array() {
    if (array_.is_valid()) return array_;
    // As the arrays of batches are made: an int64 of NumPy must not be two different types.
    array_ = field_.kind == Kind::kInt64 ? WrapArray(std::move(column_.ints))
                                         : WrapArray(std::move(column_.floats));
    if (!field_.dtype.is_none()) array_ = array_.attr("astype")(field_.dtype);
    return array_;
  }

  // The same with `count` times the shape of the field.
  const nb::object& Shaped(size_t count) {
    if (!field_.shape.is_none() && !shaped_.is_valid()) {
      const nb::object shape = Own(PySequence_Concat(nb::make_tuple(count).ptr(), field_.shape.ptr()));
      shaped_ = Array().attr("reshape")(shape);
    }
    return shaped_.is_valid() ? shaped_ : Array();
  }

  const Field& field_;
  Column column_;
  std::vector<nb::object> objects_;  // bytes; each goes into one row
  size_t num_rows_;
  const int64_t* ints_ = nullptr;
  const float* floats_ = nullptr;
  nb::object array_, shaped_, list_;
};

class RowBuilder : public Columns {
 public:
  // A run of frames ends once this much was read: values are copied from it while it is in the cache.
  static constexpr uint64_t kRunNbytes = 256 << 10;

  RowBuilder(std::string_view kind, nb::sequence specs, const std::optional<nb::sequence>& known,
             nb::sequence forms, nb::callable make_values, nb::object missing)
      : Columns(kind, specs, known),
        make_values_(std::move(make_values)),
        missing_(std::move(missing)),
        is_sequence_(ToRecordKind(kind) == RecordKind::kSequenceExample) {
    for (nb::handle item : forms) {
      const auto form = nb::cast<nb::tuple>(item);
      const auto spec = nb::cast<nb::tuple>(specs[fields_.size()]);
      PyObject* name = nb::cast<nb::str>(form[0]).release().ptr();
      PyUnicode_InternInPlace(&name);
      Field field;
      field.name = nb::steal(name);
      field.is_list = nb::cast<bool>(spec[2]);
      field.kind = this->kind(fields_.size());
      field.length = nb::cast<int64_t>(spec[3]);
      field.form = ParseForm(nb::cast<std::string_view>(form[1]));
      field.shape = form[2];
      field.dtype = form[3];
      field.is_bare = nb::cast<bool>(form[4]);
      (field.is_list ? lists_ : features_).Add(fields_.size(), field.name);
      fields_.push_back(std::move(field));
    }
  }

  nb::list Take() { return std::exchange(rows_, nb::list()); }
  size_t num_made() const { return rows_.size(); }

 protected:
  void CopyViews() override {
    num_new_ = builder().num_rows();
    if (num_new_ == 0) return;
    columns_ = builder().Finish();
    for (size_t i = 0; i < columns_.size(); ++i) {
      std::vector<nb::object>& objects = objects_.emplace_back();
      const PoolVector<ByteView>& views = columns_[i].views;
      objects.reserve(views.size());
      for (size_t j = 0; j < views.size(); ++j) {
        objects.push_back(CopyBytes(views[j]));
      }
    }
  }

  void EndRun() override {
    if (num_new_ == 0) return;
    std::vector<Values> values;
    values.reserve(fields_.size());
    for (size_t i = 0; i < fields_.size(); ++i) {
      const Field& field = fields_[i];
      if (field.form == Form::kPython) {
        values.emplace_back(field, make_values_(i, WrapColumn(field.kind, &columns_[i]), num_new_));
      } else {
        values.emplace_back(field, std::move(columns_[i]), std::move(objects_[i]), num_new_);
      }
    }
    Forget();
    for (size_t row = 0; row < num_new_; ++row) {
      nb::object made = features_.Make(row, &values, missing_);
      if (is_sequence_) {
        const nb::object lists = lists_.Make(row, &values, missing_);
        nb::dict both;
        both["context"] = made;
        both["feature_lists"] = lists;
        made = std::move(both);
      }
      rows_.append(made);
    }
  }

  void Drop() override {
    Columns::Drop();
    Forget();
    rows_ = nb::list();
  }

  uint64_t max_nbytes() const override { return kRunNbytes; }

 private:
  // The features of rows, or their feature lists.
  class Part {
   public:
    void Add(size_t field, const nb::object& name) {
      fields_.push_back(field);
      names_.push_back(name);
      empty_[name] = nb::none();
    }

    nb::object Make(size_t row, std::vector<Values>* values, nb::handle missing) {
      taken_.clear();
      bool has_all = true;
      for (const size_t field : fields_) {
        taken_.push_back((*values)[field].Take(row, missing));
        has_all &= taken_.back().is_valid();
      }
      // A copy has its room already, and the names in their order.
      nb::object made = Own(has_all ? PyDict_Copy(empty_.ptr()) : PyDict_New());
      for (size_t i = 0; i < names_.size(); ++i) {
        if (!taken_[i].is_valid()) continue;
        if (PyDict_SetItem(made.ptr(), names_[i].ptr(), taken_[i].ptr()) != 0) nb::raise_python_error();
      }
      return made;
    }

   private:
    std::vector<size_t> fields_;
    std::vector<nb::object> names_;
    nb::dict empty_;
    std::vector<nb::object> taken_;
  };

  void Forget() {
    columns_.clear();
    objects_.clear();
  }

  nb::callable make_values_;
  nb::object missing_;
  bool is_sequence_;
  std::vector<Field> fields_;
  Part features_, lists_;
  nb::list rows_;
  // Of the run that is being made into rows.
  size_t num_new_ = 0;
  std::vector<Column> columns_;
  std::vector<std::vector<nb::object>> objects_;
};

}  // namespace

void BindRowBuilder(nb::module_& m) {
  BindAppends(nb::class_<RowBuilder>(m, "RowBuilder", "Records in, rows out. One thread at a time."))
      .def(
          nb::init<std::string_view, nb::sequence, std::optional<nb::sequence>, nb::sequence, nb::callable,
                   nb::object>(),
          nb::arg("kind"), nb::arg("specs"), nb::arg("known").none(), nb::arg("forms"),
          nb::arg("make_values"), nb::arg("missing"),
          nb::sig("def __init__(self, kind: str, specs: typing.Sequence[tuple[bytes, str, bool, int, bool]], "
                  "known: typing.Sequence[tuple[bytes, bool]] | None, forms: typing.Sequence[tuple[str, str, "
                  "tuple[int, ...] | None, typing.Any, bool]], make_values: typing.Callable[[int, "
                  "tuple[typing.Any, typing.Any, typing.Any, typing.Any, typing.Any], int], "
                  "list[typing.Any]], missing: object) -> None"),
          "`specs` and `known` as for a ColumnBuilder; the last member of a spec is whether Python is spared "
          "the "
          "copy of bytes values. `forms` holds (name, form, shape or None, dtype to cast to or None, whether "
          "one "
          "value stands for itself) for each. What has the form 'python' is made by `make_values(column, its "
          "tuple, num_rows)`, which has `missing` where a row lacks the key.")
      .def("append_pick", &RowBuilder::AppendPick, nb::arg("table"), nb::arg("number"), nb::arg("verify"),
           "Add one record of a table: its Fault, or None.",
           nb::sig("def append_pick(self, table: FrameTable, number: int, verify: str) -> Fault | None"))
      .def("finish", &RowBuilder::Take, "Hand over the rows.",
           nb::sig("def finish(self) -> list[dict[str, typing.Any]]"))
      .def_prop_ro("num_rows", &RowBuilder::num_made);
}

}  // namespace tfrkit
