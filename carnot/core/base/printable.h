// base/printable.h -- text that is safe to show, whatever a model, a file or an argument contains.
#pragma once

#include <string>
#include <string_view>

namespace carnot {

/// `text` with control characters (except line breaks and tabs) and invalid UTF-8 bytes written as \xNN, so that a
/// model's output cannot move the cursor.
std::string printable(std::string_view text);

/// The same on one line: line breaks and tabs are written as \n and \t.
std::string printable_line(std::string_view text);

/// A message for people, made printable line by line. Lines longer than kMessageLineBytes are cut, and so are messages
/// of more than kMessageLines lines; each cut says how much was left out. Every message passes through here once, where
/// it is shown: in the log, and in the program's error report.
std::string printable_message(std::string_view message);

inline constexpr std::size_t kMessageLineBytes = 2000;
inline constexpr std::size_t kMessageLines = 200;

}  // namespace carnot
