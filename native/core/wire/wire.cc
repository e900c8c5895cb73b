#include "core/wire/wire.h"

namespace tfrkit {
namespace {

const uint8_t* ReadTag(const uint8_t* p, const uint8_t* end, Field* field) {
  uint64_t tag;
  p = ReadVarint(p, end, &tag, kMaxLengthSize);
  if (p == nullptr || tag > UINT32_MAX) return nullptr;
  field->number = static_cast<uint32_t>(tag >> 3);
  if (field->number == 0 || (tag & 7) > static_cast<uint8_t>(WireType::kFixed32)) return nullptr;
  field->type = static_cast<WireType>(tag & 7);
  return p;
}

// Reads the content after a tag of any type but a group.
const uint8_t* ReadContent(const uint8_t* p, const uint8_t* end, Field* field) {
  switch (field->type) {
    case WireType::kVarint:
      return ReadVarint(p, end, &field->value);
    case WireType::kFixed64:
      if (end - p < 8) return nullptr;
      field->value = LoadLE64(p);
      return p + 8;
    case WireType::kFixed32:
      if (end - p < 4) return nullptr;
      field->value = LoadLE32(p);
      return p + 4;
    case WireType::kDelimited:
      p = ReadLength(p, end, &field->size);
      if (p == nullptr) return nullptr;
      field->data = p;
      return p + field->size;
    case WireType::kGroupStart:
    case WireType::kGroupEnd:
      break;
  }
  return nullptr;
}

// Skips the group opened by `number`. Uses an explicit stack, so that no input can overflow the call stack.
const uint8_t* SkipGroup(const uint8_t* p, const uint8_t* end, uint32_t number) {
  uint32_t open[kMaxGroupDepth];
  int depth = 0;
  open[depth++] = number;
  while (depth > 0) {
    Field field;
    p = ReadTag(p, end, &field);
    if (p == nullptr) return nullptr;
    if (field.type == WireType::kGroupStart) {
      if (depth == kMaxGroupDepth) return nullptr;
      open[depth++] = field.number;
    } else if (field.type == WireType::kGroupEnd) {
      if (open[--depth] != field.number) return nullptr;
    } else {
      p = ReadContent(p, end, &field);
      if (p == nullptr) return nullptr;
    }
  }
  return p;
}

}  // namespace

const uint8_t* ReadAnyField(const uint8_t* p, const uint8_t* end, Field* field) {
  p = ReadTag(p, end, field);
  if (p == nullptr) return nullptr;
  if (field->type != WireType::kGroupStart) return ReadContent(p, end, field);
  field->data = p;
  p = SkipGroup(p, end, field->number);
  if (p != nullptr) field->size = static_cast<size_t>(p - field->data);
  return p;
}

}  // namespace tfrkit
