#include "core/wire/record_editor.h"

#include <string>
#include <vector>

#include "core/wire/example_writer.h"
#include "tests/check.h"

namespace tfrkit::test {
namespace {

const std::vector<int64_t> kInts = {1, 2};

NamedFeature Ints(std::string_view name) { return {name, {Kind::kInt64, kInts, {}, {}}}; }

std::vector<uint8_t> Bytes(const PoolVector<uint8_t>& out) { return {out.data(), out.data() + out.size()}; }

std::vector<uint8_t> Example(std::vector<NamedFeature> features) {
  PoolVector<uint8_t> out;
  CHECK(AppendExample(features, &out));
  return Bytes(out);
}

TEST(RecordEditor, DroppedFeaturesAreRemovedAndOthersUnchanged) {
  RecordEditor editor(true);
  editor.Drop("b");
  PoolVector<uint8_t> out;
  const auto record = ExactCopy(View(Example({Ints("a"), Ints("b"), Ints("c")})));
  CHECK_EQ(editor.Edit(View(record), &out), EditResult::kDone);
  CHECK_EQ(Bytes(out), Example({Ints("a"), Ints("c")}));
  CHECK_EQ(editor.seen().size(), 3u);
}

TEST(RecordEditor, OnlyKeptAndRenamedFeaturesStay) {
  RecordEditor editor(false);
  editor.Keep("a");
  editor.Rename("b", "x");
  PoolVector<uint8_t> out;
  CHECK_EQ(editor.Edit(View(Example({Ints("a"), Ints("b"), Ints("c")})), &out), EditResult::kDone);
  CHECK_EQ(Bytes(out), Example({Ints("a"), Ints("x")}));
}

TEST(RecordEditor, NamesCanBeSwapped) {
  RecordEditor editor(true);
  editor.Rename("a", "b");
  editor.Rename("b", "a");
  PoolVector<uint8_t> out;
  CHECK_EQ(editor.Edit(View(Example({Ints("a"), Ints("b")})), &out), EditResult::kDone);
  CHECK_EQ(Bytes(out), Example({Ints("b"), Ints("a")}));
}

TEST(RecordEditor, SequenceListsAreEdited) {
  const std::vector<FeatureValue> frames = {Ints("").value, Ints("").value};
  const std::vector<NamedFeature> context = {Ints("a")}, edited = {Ints("z")};
  const std::vector<NamedFeatureList> lists = {{"f", frames}, {"g", frames}}, kept = {{"f", frames}};
  PoolVector<uint8_t> record, expected, out;
  REQUIRE(AppendSequenceExample(context, lists, &record));
  REQUIRE(AppendSequenceExample(edited, kept, &expected));
  RecordEditor editor(true);
  editor.Rename("a", "z");
  editor.Drop("g");
  CHECK_EQ(editor.Edit({record.data(), record.size()}, &out), EditResult::kDone);
  CHECK_EQ(Bytes(out), Bytes(expected));
}

TEST(RecordEditor, DuplicateNamesAreRefusedAndAppendNothing) {
  RecordEditor editor(true);
  editor.Rename("a", "b");
  PoolVector<uint8_t> out;
  REQUIRE(out.PushBack(7));
  CHECK_EQ(editor.Edit(View(Example({Ints("a"), Ints("b")})), &out), EditResult::kOdd);
  CHECK_EQ(out.size(), 1u);
}

TEST(RecordEditor, DuplicateNamesInTwoMapsOfARecordAreRefused) {
  // Readers merge both maps, so the value of one would replace that of the other.
  RecordEditor editor(true);
  editor.Rename("a", "b");
  for (const auto& [first, second] : {std::pair{"a", "b"}, std::pair{"b", "a"}}) {
    std::vector<uint8_t> record = Example({Ints(first)});
    const std::vector<uint8_t> more = Example({Ints(second)});
    record.insert(record.end(), more.begin(), more.end());
    PoolVector<uint8_t> out;
    CHECK_EQ(editor.Edit(View(record), &out), EditResult::kOdd);
    CHECK_EQ(out.size(), 0u);
  }
  PoolVector<uint8_t> out;
  CHECK_EQ(editor.Edit(View(Example({Ints("a")})), &out), EditResult::kDone);  // each record by itself
}

TEST(RecordEditor, EveryTruncationIsRefusedOrARecord) {
  const auto record = Example({Ints("a"), Ints("b")});
  for (size_t size = 0; size <= record.size(); ++size) {
    RecordEditor editor(true);
    editor.Drop("a");
    PoolVector<uint8_t> out;
    const auto cut = ExactCopy(View(record).first(size));
    const EditResult result = editor.Edit(View(cut), &out);
    CHECK(result == EditResult::kOdd || size == 0 || size == record.size());
    if (result == EditResult::kOdd) CHECK_EQ(out.size(), 0u);
  }
}

}  // namespace
}  // namespace tfrkit::test
