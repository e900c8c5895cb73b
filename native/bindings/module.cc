// tfrkit._core: the native core as Python sees it. Functions convert arguments, release the
// interpreter lock, call the core and wrap the result; decisions are made on either side, not here.
#include <exception>
#include <new>

#include "bindings/arrow.h"
#include "bindings/buffers.h"

NB_MODULE(_core, m) {
  nanobind::set_leak_warnings(false);
  nanobind::register_exception_translator(
      [](const std::exception_ptr& thrown, void*) {
        try {
          std::rethrow_exception(thrown);
        } catch (const std::bad_alloc&) {
          PyErr_SetString(PyExc_MemoryError, "out of memory");
        }
      },
      nullptr);
  tfrkit::BindFileMap(m);
  tfrkit::BindByteViews(m);
  tfrkit::BindFrames(m);
  tfrkit::BindFrameTable(m);
  tfrkit::BindFrameCopy(m);
  tfrkit::BindPicker(m);
  tfrkit::BindDisks(m);
  tfrkit::BindFolders(m);
  tfrkit::BindImages(m);
  tfrkit::BindColumns(m);
  tfrkit::BindRowBuilder(m);
  tfrkit::BindEngine(m);
  tfrkit::BindFigures(m);
  tfrkit::BindMessages(m);
  tfrkit::BindRows(m);
  tfrkit::BindColumnFrames(m);
  tfrkit::BindCsv(m);
  tfrkit::BindTrainMessages(m);
  tfrkit::BindArrow(m);
}
