// Times the column builder, the survey and the row writer over a shard held in memory, one thread.
//
//   column_loop SHARD [--sequence] [--rounds N] [--project NAME,NAME...]
//
// The columns are found by a survey of the shard. Prints one JSON row per measurement, the fastest round, in
// processor time (one thread, so this is wall time less what other processes took). Payload checksums
// are not verified, so that the numbers are those of the codec alone; write_framed computes them.
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/columns/column_builder.h"
#include "core/frames/frame_reader.h"
#include "core/stats/survey.h"
#include "core/wire/example_writer.h"

namespace {

using namespace tfrkit;

struct Shard {
  std::vector<uint8_t> bytes;
  std::vector<ByteView> records;
};

bool LoadShard(const char* path, Shard* shard) {
  std::ifstream file(path, std::ios::binary);
  shard->bytes.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  const ByteView span(shard->bytes);
  for (uint64_t offset = 0; offset < span.size();) {
    Frame frame;
    if (ReadFrame(span, offset, Verify::kLengths, &frame)) return false;
    shard->records.push_back(frame.payload);
    offset = frame.end;
  }
  return !shard->records.empty();
}

double ProcessorTime() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// The fastest of `rounds` runs of `work`, in seconds.
template <class Work>
double Time(int rounds, Work work) {
  double best = 1e9;
  for (int i = 0; i < rounds; ++i) {
    const double start = ProcessorTime();
    work();
    const double taken = ProcessorTime() - start;
    if (taken < best) best = taken;
  }
  return best;
}

void Print(const char* name, size_t num_records, size_t nbytes, double seconds) {
  std::printf(
      "{\"name\": \"%s\", \"records\": %zu, \"bytes\": %zu, \"seconds\": %.6f, \"records_per_s\": %.0f, "
      "\"MB_per_s\": %.0f}\n",
      name, num_records, nbytes, seconds, static_cast<double>(num_records) / seconds,
      static_cast<double>(nbytes) / seconds / 1e6);
}

Kind KindOf(const FeatureStats& stats) {
  size_t kind = 3;
  for (size_t i = 1; i < 3; ++i) {
    if (stats.kind_counts[i] > stats.kind_counts[kind]) kind = i;
  }
  return static_cast<Kind>(kind);
}

bool IsWanted(const std::string& projection, const std::string& name) {
  return projection.empty() || ("," + projection + ",").find("," + name + ",") != std::string::npos;
}

void Fail(const Fault& fault) {
  std::fprintf(stderr, "fault %d at byte %llu\n", static_cast<int>(fault.kind),
               static_cast<unsigned long long>(fault.offset));
  std::exit(3);
}

void TimeWriter(const std::vector<ColumnSpec>& specs, const std::vector<Column>& columns, size_t num_rows,
                int rounds) {
  std::vector<ColumnSource> sources;
  for (size_t i = 0; i < specs.size(); ++i) {
    ColumnSource source;
    source.name = specs[i].name;
    source.kind = specs[i].kind;
    source.ints = columns[i].ints.data();
    source.floats = columns[i].floats.data();
    source.bytes = columns[i].bytes.data();
    source.byte_offsets = columns[i].byte_offsets.data();
    source.length = specs[i].length;
    source.splits = specs[i].length < 0 ? columns[i].splits.data() : nullptr;
    sources.push_back(source);
  }
  PoolVector<uint8_t> out;
  const double seconds = Time(rounds, [&] {
    out.Clear();
    if (!AppendFramedExamples(sources, 0, num_rows, &out)) std::exit(3);
  });
  Print("write_framed", num_rows, out.size(), seconds);
}

}  // namespace

int main(int argc, char** argv) {
  RecordKind kind = RecordKind::kExample;
  int rounds = 10;
  std::string projection;
  for (int i = 2; i < argc; ++i) {
    if (std::strcmp(argv[i], "--sequence") == 0) kind = RecordKind::kSequenceExample;
    if (std::strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) rounds = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--project") == 0 && i + 1 < argc) projection = argv[i + 1];
  }
  Shard shard;
  if (argc < 2 || !LoadShard(argv[1], &shard)) {
    std::fprintf(stderr, "usage: column_loop SHARD [--sequence] [--rounds N] [--project NAME,NAME...]\n");
    return 2;
  }
  size_t nbytes = 0;
  for (const ByteView record : shard.records) nbytes += record.size();

  std::vector<FeatureStats> features;
  const double survey_seconds = Time(rounds, [&] {
    Survey survey(kind);
    for (const ByteView record : shard.records) {
      if (const Fault fault = survey.Add(record)) Fail(fault);
    }
    features = survey.Features();
  });

  std::vector<ColumnSpec> specs;
  for (const FeatureStats& stats : features) {
    const bool is_fixed =
        stats.present == shard.records.size() && stats.num_unset == 0 && stats.min_length == stats.max_length;
    if (IsWanted(projection, stats.name)) {
      specs.push_back(
          {stats.name, KindOf(stats), stats.is_list, is_fixed ? static_cast<int64_t>(stats.max_length) : -1});
    }
  }
  constexpr size_t kBatch = 1024;
  ColumnBuilder builder(kind, specs);
  const double seconds = Time(rounds, [&] {
    for (const ByteView record : shard.records) {
      if (const Fault fault = builder.Append(record)) Fail(fault);
      if (builder.num_rows() == kBatch) builder.Finish();
    }
    builder.Finish();
  });
  Print("columns", shard.records.size(), nbytes, seconds);
  Print("survey", shard.records.size(), nbytes, survey_seconds);
  if (kind == RecordKind::kExample && projection.empty()) {
    for (const ByteView record : shard.records) {
      if (const Fault fault = builder.Append(record)) Fail(fault);
    }
    const std::vector<Column> columns = builder.Finish();
    TimeWriter(specs, columns, shard.records.size(), rounds);
  }
  return 0;
}
