// An instance of the subject whatever its kind, for tests that only make and drop it.
#pragma once

#include <memory>

#include "core/conformance/subject.h"

namespace assay::conformance {

std::shared_ptr<void> make_instance(const Subject& subject, const OptionValues& values);

}  // namespace assay::conformance
