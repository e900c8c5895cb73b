#include "bindings/byte_views.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "core/frames/crc32c.h"
#include "core/frames/frame_format.h"

namespace tfrkit {
namespace {

bool Holds(ByteView whole, ByteView part) {
  return part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size();
}

// Pages of these maps may be lost while it lives.
class Reading {
 public:
  explicit Reading(const std::vector<ViewedMap>& maps) : ranges_(RangesOf(maps)), guard_(ranges_) {}

 private:
  static std::vector<MappedRange*> RangesOf(const std::vector<ViewedMap>& maps) {
    InstallMapGuard();
    std::vector<MappedRange*> ranges;
    for (const ViewedMap& held : maps) {
      held.map->RequireWhole();
      ranges.push_back(held.map->range());
    }
    return ranges;
  }

  std::vector<MappedRange*> ranges_;
  MapGuard guard_;
};

}  // namespace

Array<int64_t> ByteViews::Lengths() const {
  PoolVector<int64_t> lengths;
  if (!lengths.Resize(views_.size())) throw std::bad_alloc();
  for (size_t i = 0; i < views_.size(); ++i) lengths[i] = static_cast<int64_t>(views_[i].size());
  return ToArray(std::move(lengths));
}

nb::object ByteViews::Copy(size_t start, size_t stop) const {
  if (start > stop || stop > views_.size()) throw nb::index_error("values lie outside the column");
  nb::object values = nb::steal(PyList_New(static_cast<Py_ssize_t>(stop - start)));
  if (!values.is_valid()) nb::raise_python_error();
  std::vector<const uint8_t*> copies;
  {
    const Reading reading(maps_);
    for (size_t i = start; i < stop; ++i) {
      nb::bytes copy = CopyBytes(views_[i]);
      copies.push_back(static_cast<const uint8_t*>(copy.data()));
      PyList_SetItem(values.ptr(), static_cast<Py_ssize_t>(i - start), copy.release().ptr());
    }
  }
  Check(start, copies);
  return values;
}

Array<uint8_t> ByteViews::Join() const {
  PoolVector<uint8_t> joined;
  std::vector<const uint8_t*> copies;
  size_t total = 0;
  for (size_t i = 0; i < views_.size(); ++i) total += views_[i].size();
  if (!joined.Resize(total)) throw std::bad_alloc();
  {
    const Reading reading(maps_);
    nb::gil_scoped_release release;
    uint8_t* to = joined.data();
    for (size_t i = 0; i < views_.size(); ++i) {
      if (!views_[i].empty()) std::memcpy(to, views_[i].data(), views_[i].size());
      copies.push_back(to);
      to += views_[i].size();
    }
  }
  Check(0, copies);
  return ToArray(std::move(joined));
}

void ByteViews::Check(size_t start, const std::vector<const uint8_t*>& copies) const {
  for (const ViewedMap& held : maps_) {
    if (held.map->range()->is_torn()) held.map->Raise();
  }
  for (const ViewedMap& held : maps_) {
    if (!held.map->MayBeRewritten()) continue;
    bool is_same = marks_ != nullptr;
    {
      const Reading reading(maps_);
      for (size_t i = 0; i < copies.size() && is_same; ++i) {
        const ByteView view = views_[start + i];
        if (Holds(held.map->bytes(), view)) is_same = IsAsChecked(view, copies[i]);
      }
    }
    if (!is_same) held.map->Raise();
  }
}

bool ByteViews::IsAsChecked(ByteView view, const uint8_t* copy) const {
  if (view.empty()) return true;
  const auto mark = std::find_if(marks_->begin(), marks_->end(),
                                 [&](const RecordMark& one) { return Holds(one.payload, view); });
  return mark != marks_->end() && MaskCrc(Crc32c(mark->payload)) == mark->crc &&
         std::memcmp(copy, view.data(), view.size()) == 0;
}

void BindByteViews(nb::module_& m) {
  nb::class_<ByteViews>(m, "ByteViews",
                        "Bytes values of a column that lie in mapped files. Any thread. A copy raises if its "
                        "file was cut off or overwritten.")
      .def("__len__", &ByteViews::size)
      .def("lengths", &ByteViews::Lengths, "The size of each value.",
           nb::sig("def lengths(self) -> numpy.typing.NDArray[numpy.int64]"))
      .def("copy", &ByteViews::Copy, nb::arg("start"), nb::arg("stop"), "Values [start, stop).",
           nb::sig("def copy(self, start: int, stop: int) -> list[bytes]"))
      .def("join", &ByteViews::Join, "All values, one after the other.",
           nb::sig("def join(self) -> numpy.typing.NDArray[numpy.uint8]"));
}

}  // namespace tfrkit
