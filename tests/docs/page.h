// docs/page.h -- pages of the documentation, and the blocks in them that are generated.
//
//   <!-- generated: NAME -->
//   ...
//   <!-- end -->
//
// A test compares a block with what the program prints; with UPDATE_DOCS=1 in the environment it writes the block.
#pragma once

#include <string>
#include <vector>

namespace carnot::testing {

/// README.md, ARCHITECTURE.md, CONTRIBUTING.md and every page below docs/ and bench/results/, from the repository's
/// root.
std::vector<std::string> documentation_pages();

/// The text of a page, or of any other file of the repository. A missing file is a failure.
std::string page_text(const std::string& page);

/// Fails if the page lacks the block, or if the block differs from `expected`, which ends with a newline.
void expect_block(const std::string& page, const std::string& name, const std::string& expected);

/// A row of cells whose bars are escaped.
std::string table_row(const std::vector<std::string>& cells);
/// The heading and the line below it.
std::string table_heading(const std::vector<std::string>& cells);

/// `text` in a table outside code: what Markdown would read as markup is escaped.
std::string plain_cell(const std::string& text);

/// Matches of the pattern's first group, in order.
std::vector<std::string> matches(const std::string& text, const char* pattern);

/// What the program prints on standard output; a failure if it does not succeed.
std::string program_says(const std::vector<std::string>& arguments);

}  // namespace carnot::testing
