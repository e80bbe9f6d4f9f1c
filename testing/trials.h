// testing/trials.h -- how often a test tries random input: a tenth as often under a sanitizer, which makes each try ten
// times as slow.
#pragma once

namespace carnot::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

/// REQUIRES: count >= 10.
constexpr int trials(int count) { return kSanitized ? count / 10 : count; }

}  // namespace carnot::testing
