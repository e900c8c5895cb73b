// One suite over every variant that this CPU runs, against the definition in double precision.
#include "core/images/resize.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/check.h"

namespace tfrkit::test {
namespace {

struct Size {
  size_t height;
  size_t width;
};

std::vector<ResizeVariant> SupportedVariants() {
  std::vector<ResizeVariant> supported;
  for (const ResizeVariant& variant : ResizeVariants()) {
    if (variant.is_supported()) supported.push_back(variant);
  }
  return supported;
}

ImageView ViewOf(const std::vector<uint8_t>& bytes, Size size, size_t channels) {
  return {bytes, size.height, size.width, channels, size.width * channels};
}

ImageSpan SpanOf(std::vector<uint8_t>& bytes, Size size, size_t channels) {
  return {bytes, size.height, size.width, channels, size.width * channels};
}

// Weight of each source position for one target position: the definition, without any shortcut.
std::vector<double> ReferenceWeights(size_t num_source, size_t num_target, size_t position, bool antialias) {
  const double scale = static_cast<double>(num_source) / static_cast<double>(num_target);
  const double radius = antialias ? std::max(scale, 1.0) : 1.0;
  const double centre = (static_cast<double>(position) + 0.5) * scale;
  std::vector<double> weights(num_source);
  double sum = 0;
  for (size_t i = 0; i < num_source; ++i) {
    weights[i] = std::max(0.0, 1 - std::abs(static_cast<double>(i) + 0.5 - centre) / radius);
    sum += weights[i];
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

std::vector<double> ReferenceResize(const std::vector<uint8_t>& source, Size from, Size to, size_t channels,
                                    bool antialias) {
  std::vector<double> blended(to.height * from.width * channels);
  for (size_t y = 0; y < to.height; ++y) {
    const std::vector<double> weights = ReferenceWeights(from.height, to.height, y, antialias);
    for (size_t i = 0; i < from.width * channels; ++i) {
      for (size_t row = 0; row < from.height; ++row) {
        blended[y * from.width * channels + i] += weights[row] * source[row * from.width * channels + i];
      }
    }
  }
  std::vector<double> result(to.height * to.width * channels);
  for (size_t x = 0; x < to.width; ++x) {
    const std::vector<double> weights = ReferenceWeights(from.width, to.width, x, antialias);
    for (size_t y = 0; y < to.height; ++y) {
      for (size_t channel = 0; channel < channels; ++channel) {
        double& sum = result[(y * to.width + x) * channels + channel];
        for (size_t column = 0; column < from.width; ++column) {
          sum += weights[column] * blended[(y * from.width + column) * channels + channel];
        }
      }
    }
  }
  return result;
}

const std::vector<std::pair<Size, Size>> kSizes = {
    {{1, 1}, {1, 1}},    {{1, 1}, {5, 7}},      {{5, 7}, {1, 1}},      {{2, 2}, {3, 3}},
    {{3, 3}, {2, 2}},    {{4, 4}, {8, 8}},      {{8, 8}, {4, 4}},      {{7, 5}, {16, 9}},
    {{33, 31}, {17, 8}}, {{1, 100}, {9, 9}},    {{100, 1}, {9, 23}},   {{37, 50}, {22, 22}},
    {{64, 48}, {7, 65}}, {{90, 120}, {90, 13}}, {{20, 200}, {200, 3}},
};

TEST(Resize, EveryVariantIsWithinOneLevelOfTheDefinition) {
  Random random(1);
  for (const ResizeVariant& variant : SupportedVariants()) {
    for (const auto& [from, to] : kSizes) {
      for (size_t channels = 1; channels <= 4; ++channels) {
        for (const bool antialias : {false, true}) {
          const std::vector<uint8_t> source = ExactCopy(random.Bytes(from.height * from.width * channels));
          std::vector<uint8_t> target = ExactCopy(random.Bytes(to.height * to.width * channels));
          const ResizeOptions options{Filter::kBilinear, antialias, to.height, to.width};
          REQUIRE(ResizeImageWith(variant, ViewOf(source, from, channels), SpanOf(target, to, channels),
                                  options));
          const std::vector<double> expected = ReferenceResize(source, from, to, channels, antialias);
          double worst = 0;
          for (size_t i = 0; i < target.size(); ++i)
            worst = std::max(worst, std::abs(target[i] - expected[i]));
          // Half a level is what rounding costs; the rest is weights of 14 bits.
          if (worst > 0.55) {
            RecordFailure(__FILE__, __LINE__,
                          std::string(variant.name) + ", " + Show(from.height) + "x" + Show(from.width) +
                              " to " + Show(to.height) + "x" + Show(to.width) + ", channels " +
                              Show(channels) + ", off by " + Show(worst));
          }
        }
      }
    }
  }
}

TEST(Resize, VariantsAgreeToTheBit) {
  Random random(2);
  const std::vector<ResizeVariant> variants = SupportedVariants();
  for (int round = 0; round < 400; ++round) {
    const Size from{1 + random.Below(80), 1 + random.Below(120)};
    const Size to{1 + random.Below(80), 1 + random.Below(120)};
    const size_t channels = 1 + random.Below(4);
    const std::vector<uint8_t> source = ExactCopy(random.Bytes(from.height * from.width * channels));
    const ResizeOptions options{Filter::kBilinear, random.Below(2) == 0, to.height, to.width};
    std::vector<uint8_t> expected(to.height * to.width * channels);
    REQUIRE(ResizeImageWith(variants[0], ViewOf(source, from, channels), SpanOf(expected, to, channels),
                            options));
    for (const ResizeVariant& variant : variants) {
      std::vector<uint8_t> target = ExactCopy(random.Bytes(expected.size()));
      REQUIRE(
          ResizeImageWith(variant, ViewOf(source, from, channels), SpanOf(target, to, channels), options));
      CHECK_EQ(target, expected);
    }
  }
}

TEST(Resize, PlainAreaIsUnchanged) {
  for (const ResizeVariant& variant : SupportedVariants()) {
    for (const uint8_t level : {0, 1, 127, 254, 255}) {
      for (const auto& [from, to] : kSizes) {
        const std::vector<uint8_t> source(from.height * from.width * 3, level);
        std::vector<uint8_t> target(to.height * to.width * 3);
        const ResizeOptions options{Filter::kBilinear, true, to.height, to.width};
        REQUIRE(ResizeImageWith(variant, ViewOf(source, from, 3), SpanOf(target, to, 3), options));
        CHECK(std::all_of(target.begin(), target.end(), [&](uint8_t found) { return found == level; }));
      }
    }
  }
}

TEST(Resize, SameSizeIsACopy) {
  Random random(3);
  const Size size{19, 23};
  const std::vector<uint8_t> source = random.Bytes(size.height * size.width * 3);
  for (const Filter filter : {Filter::kBilinear, Filter::kNearest}) {
    std::vector<uint8_t> target(source.size());
    REQUIRE(ResizeImage(ViewOf(source, size, 3), SpanOf(target, size, 3),
                        {filter, true, size.height, size.width}));
    CHECK_EQ(target, source);
  }
}

TEST(Resize, ThousandsOfSourcePixelsAreAveraged) {
  // One target pixel from 40,000: each weight is below the precision of one.
  std::vector<uint8_t> source(40000);
  for (size_t i = 0; i < source.size(); ++i) source[i] = i % 2 == 0 ? 0 : 200;
  std::vector<uint8_t> target(1);
  for (const ResizeVariant& variant : SupportedVariants()) {
    const Size from{1, source.size()};
    REQUIRE(ResizeImageWith(variant, ViewOf(source, from, 1), SpanOf(target, {1, 1}, 1),
                            {Filter::kBilinear, true, 1, 1}));
    CHECK(std::abs(int{target[0]} - 100) <= 1);
  }
}

TEST(Resize, NearestTakesThePixelUnderTheCentre) {
  Random random(4);
  for (const auto& [from, to] : kSizes) {
    const std::vector<uint8_t> source = ExactCopy(random.Bytes(from.height * from.width * 2));
    std::vector<uint8_t> target = ExactCopy(random.Bytes(to.height * to.width * 2));
    REQUIRE(ResizeImage(ViewOf(source, from, 2), SpanOf(target, to, 2),
                        {Filter::kNearest, true, to.height, to.width}));
    for (size_t y = 0; y < to.height; ++y) {
      for (size_t x = 0; x < to.width; ++x) {
        const size_t row = (2 * y + 1) * from.height / (2 * to.height);
        const size_t column = (2 * x + 1) * from.width / (2 * to.width);
        CHECK_EQ(target[(y * to.width + x) * 2], source[(row * from.width + column) * 2]);
      }
    }
  }
}

TEST(Resize, WindowIsACropOfTheWhole) {
  Random random(5);
  const Size from{45, 61}, whole{30, 40};
  for (const Filter filter : {Filter::kBilinear, Filter::kNearest}) {
    for (const bool antialias : {false, true}) {
      for (int round = 0; round < 50; ++round) {
        const size_t channels = 1 + random.Below(4);
        const std::vector<uint8_t> source = ExactCopy(random.Bytes(from.height * from.width * channels));
        ResizeOptions options{filter, antialias, whole.height, whole.width};
        std::vector<uint8_t> all(whole.height * whole.width * channels);
        REQUIRE(ResizeImage(ViewOf(source, from, channels), SpanOf(all, whole, channels), options));
        const Size part{1 + random.Below(whole.height), 1 + random.Below(whole.width)};
        options.top = random.Below(whole.height - part.height + 1);
        options.left = random.Below(whole.width - part.width + 1);
        std::vector<uint8_t> target(part.height * part.width * channels);
        REQUIRE(ResizeImage(ViewOf(source, from, channels), SpanOf(target, part, channels), options));
        for (size_t y = 0; y < part.height; ++y) {
          const ByteView expected = ByteView(all).subspan(
              ((options.top + y) * whole.width + options.left) * channels, part.width * channels);
          const ByteView found = ByteView(target).subspan(y * part.width * channels, part.width * channels);
          CHECK(std::equal(found.begin(), found.end(), expected.begin()));
        }
      }
    }
  }
}

TEST(Resize, RowsWithAStrideSkipTheirGaps) {
  Random random(6);
  const size_t stride = 100;
  const Size from{11, 13}, to{8, 9};
  const std::vector<uint8_t> source = ExactCopy(random.Bytes(10 * stride + 13 * 3));
  std::vector<uint8_t> target(7 * stride + 9 * 3, 0xee);
  const ResizeOptions options{Filter::kBilinear, true, to.height, to.width};
  REQUIRE(ResizeImage({source, from.height, from.width, 3, stride}, {target, to.height, to.width, 3, stride},
                      options));
  std::vector<uint8_t> dense;
  for (size_t y = 0; y < from.height; ++y) {
    dense.insert(dense.end(), source.begin() + static_cast<ptrdiff_t>(y * stride),
                 source.begin() + static_cast<ptrdiff_t>(y * stride + 39));
  }
  std::vector<uint8_t> expected(8 * 9 * 3);
  REQUIRE(ResizeImage(ViewOf(dense, from, 3), SpanOf(expected, to, 3), options));
  for (size_t y = 0; y < to.height; ++y) {
    CHECK(std::equal(expected.begin() + static_cast<ptrdiff_t>(y * 27),
                     expected.begin() + static_cast<ptrdiff_t>(y * 27 + 27),
                     target.begin() + static_cast<ptrdiff_t>(y * stride)));
    if (y + 1 < to.height) CHECK_EQ(target[y * stride + 27], 0xee);
  }
}

TEST(Resize, InconsistentSizesAreRefused) {
  const std::vector<uint8_t> source(12 * 3);
  std::vector<uint8_t> target(4 * 3, 7);
  const ImageView from{source, 3, 4, 3, 12};
  const ImageSpan to{target, 2, 2, 3, 6};
  const ResizeOptions options{Filter::kBilinear, true, 2, 2};
  CHECK(ResizeImage(from, to, options));
  std::fill(target.begin(), target.end(), 7);
  const auto refuse = [&](ImageView a, ImageSpan b, ResizeOptions how) { CHECK(!ResizeImage(a, b, how)); };
  const size_t huge = ~size_t{0} / 2;
  refuse({source, 4, 4, 3, 12}, to, options);  // rows past the end
  refuse({source, 3, 4, 3, 13}, to, options);  // the same by the stride
  refuse({source, 3, 5, 3, 12}, to, options);  // rows that overlap
  refuse({source, 0, 4, 3, 12}, to, options);  // nothing
  refuse({source, 3, 4, 0, 12}, to, options);  //
  refuse({source, 3, 4, 5, 20}, to, options);  // too many channels
  refuse({source, 1, kMaxImageSide + 1, 1, 1}, to, options);
  refuse({source, huge, 4, 3, huge}, to, options);                      // lengths that overflow
  refuse(from, {target, 2, 2, 1, 2}, options);                          // other channels
  refuse(from, {target, 3, 2, 3, 6}, {Filter::kBilinear, true, 3, 2});  // target past its end
  refuse(from, to, {Filter::kBilinear, true, 1, 2});                    // a window larger than the whole
  refuse(from, to, {Filter::kBilinear, true, 3, 3, 2, 0});              // or outside it
  refuse(from, to, {Filter::kNearest, true, 3, 3, 0, huge});
  CHECK(std::all_of(target.begin(), target.end(), [](uint8_t found) { return found == 7; }));
}

}  // namespace
}  // namespace tfrkit::test
