// Columns out to Arrow: the buffers of NumPy arrays, without a copy, as arrays of the C data interface.
//
// A consumer calls back whenever it likes, on any thread, without the interpreter lock: to get the next
// batch, and to release one. So everything of Python is accessed through `Interpreter`, which takes the lock,
// and keeps out once the interpreter is about to end.
#include "bindings/arrow.h"

#include <nanobind/stl/string.h>

#include <cerrno>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bindings/buffers.h"
#include "bindings/interpreter.h"
#include "core/base/utf8.h"

namespace tfrkit {

namespace {

constexpr int64_t kNullable = 2;  // ARROW_FLAG_NULLABLE

// ---- schemas ----

struct Field {
  std::string format, name, metadata;
  bool is_nullable = false;
  std::vector<Field> children;
};

std::string ToString(nb::handle bytes) {
  const auto value = nb::cast<nb::bytes>(bytes);
  return {value.c_str(), value.size()};
}

// From (format, name, metadata, nullable, children).
Field ParseField(nb::handle description) {
  const auto parts = nb::cast<nb::tuple>(description);
  Field field{ToString(parts[0]), ToString(parts[1]), ToString(parts[2]), nb::cast<bool>(parts[3]), {}};
  for (nb::handle child : nb::cast<nb::tuple>(parts[4])) field.children.push_back(ParseField(child));
  return field;
}

struct SchemaParts {
  explicit SchemaParts(const Field& field)
      : format(field.format), name(field.name), metadata(field.metadata) {}
  ~SchemaParts() {
    for (ArrowSchema& child : children) {
      if (child.release != nullptr) child.release(&child);
    }
  }

  std::string format, name, metadata;
  std::vector<ArrowSchema> children;
  std::vector<ArrowSchema*> pointers;
};

void ReleaseSchema(ArrowSchema* schema) {
  delete static_cast<SchemaParts*>(schema->private_data);
  schema->release = nullptr;
}

void ExportSchema(const Field& field, ArrowSchema* schema) {
  auto parts = std::make_unique<SchemaParts>(field);
  parts->children.resize(field.children.size());
  for (size_t i = 0; i < field.children.size(); ++i) {
    ExportSchema(field.children[i], &parts->children[i]);
    parts->pointers.push_back(&parts->children[i]);
  }
  *schema = {.format = parts->format.c_str(),
             .name = parts->name.c_str(),
             .metadata = parts->metadata.empty() ? nullptr : parts->metadata.data(),
             .flags = field.is_nullable ? kNullable : 0,
             .n_children = static_cast<int64_t>(parts->children.size()),
             .children = parts->pointers.data(),
             .dictionary = nullptr,
             .release = ReleaseSchema,
             .private_data = parts.get()};
  parts.release();
}

// ---- arrays ----

struct ArrayParts {
  ~ArrayParts() {
    for (ArrowArray& child : children) {
      if (child.release != nullptr) child.release(&child);
    }
  }

  std::deque<Buffer> views;  // released under the interpreter lock
  std::vector<const void*> buffers;
  std::vector<size_t> sizes;
  std::vector<ArrowArray> children;
  std::vector<ArrowArray*> pointers;
};

// Children are arrays of their own: a consumer may take one out and keep it longer than its parent.
void ReleaseArray(ArrowArray* array) {
  const Interpreter interpreter;
  if (interpreter) delete static_cast<ArrayParts*>(array->private_data);
  array->release = nullptr;
}

// Holds buffers against what a consumer will read of them: it trusts our word, and reads past the end if it
// is wrong.
class ArrayCheck {
 public:
  ArrayCheck(const Field& field, const ArrayParts& parts, int64_t length)
      : field_(field), parts_(parts), length_(length) {}

  void Run(int64_t null_count) const {
    const char letter = field_.format[0];
    Require(length_ >= 0 && length_ < INT64_MAX && null_count >= 0 && null_count <= length_, "length");
    if (letter == 'n') return Require(parts_.buffers.empty(), "number of buffers");
    Require(!parts_.buffers.empty(), "number of buffers");
    if (parts_.buffers[0] != nullptr) {
      RequireSize(0, NumBytes(length_), 1);
    } else {
      Require(null_count == 0, "number of nulls");
    }
    if (letter == '+') return CheckNested();
    const bool is_bytes = letter == 'Z' || letter == 'U';
    Require(parts_.buffers.size() == (is_bytes ? 3 : 2), "number of buffers");
    if (is_bytes) {
      CheckOffsets(parts_.sizes[2]);
    } else if (letter == 'b') {
      RequireSize(1, NumBytes(length_), 1);
    } else {
      RequireSize(1, length_, ValueSize(letter));
    }
  }

 private:
  static int64_t NumBytes(int64_t num_bits) { return num_bits / 8 + (num_bits % 8 != 0); }

  static size_t ValueSize(char letter) {
    switch (letter) {
      case 'c':
      case 'C':
        return 1;
      case 's':
      case 'S':
      case 'e':
        return 2;
      case 'i':
      case 'I':
      case 'f':
        return 4;
      default:  // l L g
        return 8;
    }
  }

  void CheckNested() const {
    const char letter = field_.format[1];
    Require(parts_.buffers.size() == (letter == 'L' ? 2 : 1), "number of buffers");
    if (letter == 'L') return CheckOffsets(static_cast<uint64_t>(parts_.children[0].length));
    const int64_t size = letter == 'w' ? std::stoll(field_.format.substr(3)) : 1;
    for (const ArrowArray& child : parts_.children) {
      const bool has_all = size == 0 || child.length / size >= length_;
      Require(letter == 'w' ? has_all : child.length == length_, "length of a child");
    }
  }

  void CheckOffsets(uint64_t limit) const {
    RequireSize(1, length_ + 1, sizeof(int64_t));
    const auto* offsets = static_cast<const int64_t*>(parts_.buffers[1]);
    bool is_rising = offsets[0] >= 0;
    for (int64_t i = 0; i < length_; ++i) is_rising &= offsets[i] <= offsets[i + 1];
    Require(is_rising && static_cast<uint64_t>(offsets[length_]) <= limit, "offsets");
  }

  void RequireSize(size_t buffer, int64_t num_values, size_t value_size) const {
    const auto address = reinterpret_cast<uintptr_t>(parts_.buffers[buffer]);
    Require(parts_.sizes[buffer] / value_size >= static_cast<uint64_t>(num_values), "size of a buffer");
    Require(address % value_size == 0, "alignment of a buffer");
  }

  void Require(bool holds, const char* what) const {
    if (!holds)
      throw std::invalid_argument(std::string(what) + " does not fit, column '" + field_.name + "'");
  }

  const Field& field_;
  const ArrayParts& parts_;
  int64_t length_;
};

// From (length, number of nulls, buffers, children). REQUIRES: the interpreter lock.
void ExportArray(const Field& field, nb::handle description, ArrowArray* array) {
  const auto node = nb::cast<nb::tuple>(description);
  auto parts = std::make_unique<ArrayParts>();
  for (nb::handle object : nb::cast<nb::tuple>(node[2])) {
    if (object.is_none()) {
      parts->buffers.push_back(nullptr);
      parts->sizes.push_back(0);
    } else {
      const ByteView bytes = parts->views.emplace_back(object).bytes();
      parts->buffers.push_back(bytes.data());
      parts->sizes.push_back(bytes.size());
    }
  }
  const auto children = nb::cast<nb::tuple>(node[3]);
  if (children.size() != field.children.size())
    throw std::invalid_argument("number of children does not fit");
  parts->children.resize(children.size());
  for (size_t i = 0; i < children.size(); ++i) {
    ExportArray(field.children[i], children[i], &parts->children[i]);
    parts->pointers.push_back(&parts->children[i]);
  }
  const auto length = nb::cast<int64_t>(node[0]), null_count = nb::cast<int64_t>(node[1]);
  ArrayCheck(field, *parts, length).Run(null_count);
  *array = {.length = length,
            .null_count = null_count,
            .offset = 0,
            .n_buffers = static_cast<int64_t>(parts->buffers.size()),
            .n_children = static_cast<int64_t>(parts->children.size()),
            .buffers = parts->buffers.data(),
            .children = parts->pointers.data(),
            .dictionary = nullptr,
            .release = ReleaseArray,
            .private_data = parts.get()};
  parts.release();
}

// ---- streams ----

struct StreamParts {
  Field field;
  nb::object batches;  // an iterator; null at the end. Released under the interpreter lock.
  std::string error;
  int code = 0;  // an errno once something failed: what follows is lost, and must not look like the end
};

StreamParts* PartsOf(ArrowArrayStream* stream) { return static_cast<StreamParts*>(stream->private_data); }

// "CorruptRecordError: payload checksum mismatch, ... - at a.tfrecord, record 3, byte 120".
std::string Explain(const nb::python_error& error) try {
  std::string text = nb::cast<std::string>(nb::getattr(error.type(), "__name__"));
  const auto message = nb::steal(PyObject_Str(error.value().ptr()));
  nb::object bytes;
  if (message.is_valid()) {
    // A path that is not UTF-8 comes with surrogates.
    bytes = nb::steal(PyUnicode_AsEncodedString(message.ptr(), "utf-8", "backslashreplace"));
  }
  if (bytes.is_valid()) {
    text += ": " + ToString(bytes);
  } else {
    PyErr_Clear();  // the type alone has to do
  }
  return text;
} catch (const std::exception&) {
  return {};
}

int GetSchema(ArrowArrayStream* stream, ArrowSchema* schema) {
  try {
    ExportSchema(PartsOf(stream)->field, schema);
    return 0;
  } catch (const std::exception& error) {
    PartsOf(stream)->error = error.what();
    return ENOMEM;
  }
}

void Pull(StreamParts* parts, ArrowArray* array) {
  if (!parts->batches.is_valid()) return;
  const auto batch = nb::steal(PyIter_Next(parts->batches.ptr()));
  if (batch.is_valid()) return ExportArray(parts->field, batch, array);
  if (PyErr_Occurred() != nullptr) nb::raise_python_error();
  parts->batches.reset();
}

int GetNext(ArrowArrayStream* stream, ArrowArray* array) {
  StreamParts* parts = PartsOf(stream);
  *array = {};
  if (parts->code != 0) return parts->code;
  const Interpreter interpreter;
  if (!interpreter) {
    parts->error = "the interpreter is shutting down";
    return parts->code = ECANCELED;
  }
  try {
    Pull(parts, array);
  } catch (nb::python_error& error) {
    parts->code = error.matches(PyExc_MemoryError) ? ENOMEM : EIO;
    parts->error = Explain(error);
    // The consumer raises an error of its own. Ctrl-C must stay one.
    if (error.matches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();
  } catch (const std::bad_alloc&) {
    parts->code = ENOMEM;
  } catch (const std::exception& error) {
    parts->code = EINVAL;
    parts->error = error.what();
  }
  return parts->code;
}

const char* GetLastError(ArrowArrayStream* stream) {
  const std::string& error = PartsOf(stream)->error;
  return error.empty() ? nullptr : error.c_str();
}

void ReleaseStream(ArrowArrayStream* stream) {
  const Interpreter interpreter;
  if (interpreter) delete PartsOf(stream);
  stream->release = nullptr;
}

// ---- capsules ----

// A consumer moves the struct out and leaves `release` null; an unused one is released with its
// capsule.
template <class Struct>
nb::object ToCapsule(std::unique_ptr<Struct> value, const char* name) {
  PyObject* capsule = PyCapsule_New(value.get(), name, [](PyObject* self) {
    auto* held = static_cast<Struct*>(PyCapsule_GetPointer(self, PyCapsule_GetName(self)));
    if (held->release != nullptr) held->release(held);
    delete held;
  });
  if (capsule == nullptr) {
    value->release(value.get());
    nb::raise_python_error();
  }
  value.release();
  return nb::steal(capsule);
}

nb::object MakeSchema(nb::tuple field) {
  auto schema = std::make_unique<ArrowSchema>();
  ExportSchema(ParseField(field), schema.get());
  return ToCapsule(std::move(schema), "arrow_schema");
}

nb::object MakeStream(nb::tuple field, nb::iterator batches) {
  Interpreter::CloseAtExit();
  auto parts = std::make_unique<StreamParts>();
  parts->field = ParseField(field);
  parts->batches = batches;
  auto stream = std::make_unique<ArrowArrayStream>(
      ArrowArrayStream{GetSchema, GetNext, GetLastError, ReleaseStream, parts.get()});
  parts.release();
  return ToCapsule(std::move(stream), "arrow_array_stream");
}

using ByteOffsets = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// The first value that is not UTF-8, or -1.
int64_t FindInvalidUtf8(nb::handle data, const ByteOffsets& offsets) {
  const Buffer buffer(data);
  const ByteView bytes = buffer.bytes();
  const int64_t* at = offsets.data();
  const size_t size = offsets.size();
  nb::gil_scoped_release release;
  if (size < 2) return -1;
  bool is_rising = at[0] >= 0 && static_cast<uint64_t>(at[size - 1]) <= bytes.size();
  for (size_t i = 0; i + 1 < size; ++i) is_rising &= at[i] <= at[i + 1];
  if (!is_rising) throw std::out_of_range("offsets lie outside the data");
  const auto value = [&](int64_t start, int64_t stop) {
    return bytes.subspan(static_cast<size_t>(start), static_cast<size_t>(stop - start));
  };
  // All at once is several times quicker than one by one; then no value may start within a character.
  bool is_sound = IsUtf8(value(at[0], at[size - 1]));
  for (size_t i = 1; i + 1 < size && is_sound; ++i) {
    is_sound = at[i] == at[size - 1] || (bytes[static_cast<size_t>(at[i])] & 0xc0) != 0x80;
  }
  for (size_t i = 0; i + 1 < size && !is_sound; ++i) {
    if (!IsUtf8(value(at[i], at[i + 1]))) return static_cast<int64_t>(i);
  }
  return -1;
}

}  // namespace

void BindArrow(nb::module_& m) {
  m.def("make_arrow_schema", &MakeSchema, nb::arg("field"),
        "A capsule with the ArrowSchema of (format, name, metadata, nullable, children).",
        nb::sig("def make_arrow_schema(field: tuple[typing.Any, ...]) -> object"));
  m.def("make_arrow_stream", &MakeStream, nb::arg("field"), nb::arg("batches"),
        "A capsule with an ArrowArrayStream over (length, number of nulls, buffers, children) of each batch.",
        nb::sig("def make_arrow_stream(field: tuple[typing.Any, ...], "
                "batches: typing.Iterator[tuple[typing.Any, ...]]) -> object"));
  m.def("find_invalid_utf8", &FindInvalidUtf8, nb::arg("data"), nb::arg("offsets"),
        "The number of the first value that is not UTF-8, or -1.",
        nb::sig("def find_invalid_utf8(data: object, offsets: numpy.typing.NDArray[numpy.int64]) -> int"));
}

}  // namespace tfrkit
