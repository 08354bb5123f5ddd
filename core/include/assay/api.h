// ASSAY_API: marks what libassay exports; everything else in the SDK is hidden.
#pragma once

#define ASSAY_API __attribute__((visibility("default")))
