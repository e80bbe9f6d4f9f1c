// base/printable.h -- text that is safe to show, whatever a model, a file or an argument put into it.
#pragma once

#include <string>
#include <string_view>

namespace carnot {

/// `text` with control characters other than line breaks and tabs, and bytes that are not UTF-8, written as \xNN:
/// what a model said cannot move the cursor.
std::string printable(std::string_view text);

/// The same on one line: line breaks and tabs as \n and \t.
std::string printable_line(std::string_view text);

/// A message for people, line by line printable. A line longer than kMessageLineBytes is cut, and so is a message of
/// more than kMessageLines lines; each cut says how much it left out. Every message passes through here once, where it
/// is shown: in the log, and in the program's report of an error.
std::string printable_message(std::string_view message);

inline constexpr std::size_t kMessageLineBytes = 2000;
inline constexpr std::size_t kMessageLines = 200;

}  // namespace carnot
