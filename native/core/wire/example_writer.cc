#include "core/wire/example_writer.h"

#include "core/wire/feature_encoding.h"

namespace tfrkit {
namespace {

size_t FeaturesSize(std::span<const NamedFeature> features) {
  size_t size = 0;
  for (const NamedFeature& feature : features) {
    size += DelimitedSize(EntrySize(feature.name, FeatureSize(feature.value)));
  }
  return size;
}

uint8_t* WriteFeatures(uint8_t* p, std::span<const NamedFeature> features) {
  for (const NamedFeature& feature : features) {
    const size_t list_size = ListSize(feature.value);
    p = WriteEntryHead(p, feature.name, FeatureSize(feature.value, list_size));
    p = WriteFeature(p, feature.value, list_size);
  }
  return p;
}

size_t FramesSize(const NamedFeatureList& list) {
  size_t size = 0;
  for (const FeatureValue& frame : list.frames) size += DelimitedSize(FeatureSize(frame));
  return size;
}

}  // namespace

bool AppendExample(std::span<const NamedFeature> features, PoolVector<uint8_t>* out) {
  const size_t size = FeaturesSize(features);
  const size_t start = out->size();
  // WriteVarint requires room for the longest varint, so the end needs padding.
  if (!out->Reserve(start + DelimitedSize(size) + kMaxVarintSize)) return false;
  uint8_t* const first = out->data() + start;
  const uint8_t* const last = WriteFeatures(WriteHead(first, kFieldOneTag, size), features);
  return out->Resize(start + static_cast<size_t>(last - first));
}

bool AppendSequenceExample(std::span<const NamedFeature> context, std::span<const NamedFeatureList> lists,
                           PoolVector<uint8_t>* out) {
  const size_t context_size = FeaturesSize(context);
  size_t lists_size = 0;
  for (const NamedFeatureList& list : lists)
    lists_size += DelimitedSize(EntrySize(list.name, FramesSize(list)));
  const size_t start = out->size();
  if (!out->Reserve(start + DelimitedSize(context_size) + DelimitedSize(lists_size) + kMaxVarintSize))
    return false;
  uint8_t* const first = out->data() + start;
  uint8_t* p = first;
  if (!context.empty()) p = WriteFeatures(WriteHead(p, kFieldOneTag, context_size), context);
  p = WriteHead(p, kFieldTwoTag, lists_size);
  for (const NamedFeatureList& list : lists) {
    p = WriteEntryHead(p, list.name, FramesSize(list));
    for (const FeatureValue& frame : list.frames) {
      const size_t list_size = ListSize(frame);
      p = WriteHead(p, kFieldOneTag, FeatureSize(frame, list_size));
      p = WriteFeature(p, frame, list_size);
    }
  }
  return out->Resize(start + static_cast<size_t>(p - first));
}

}  // namespace tfrkit
