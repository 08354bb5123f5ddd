// Clock: wall and monotonic time, and the identity of this boot and of a process.
#pragma once

#include <cstdint>
#include <string>

namespace assay {

int64_t now_us();                ///< UTC, microseconds since 1970
double monotonic_s();            ///< seconds from an arbitrary start, never goes back
double thread_cpu_s();           ///< CPU time of the calling thread
std::string boot_id();           ///< of the running kernel
int64_t process_start(int pid);  ///< field 22 of /proc/PID/stat, 0 if there is no such process

}  // namespace assay
