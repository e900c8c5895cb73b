// Whether bytes are UTF-8, and whether they look like text.
#pragma once

#include "core/base/bytes.h"

namespace tfrkit {

// Well-formed by the Unicode standard: no overlong forms, no surrogates, nothing above U+10FFFF.
bool IsUtf8(ByteView bytes);

// UTF-8 without control characters other than tab, line feed and carriage return.
bool IsText(ByteView bytes);

}  // namespace tfrkit
