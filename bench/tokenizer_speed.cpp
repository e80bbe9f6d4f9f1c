// Seconds that encoding takes on one thread, for bench/peers/tokenizer_speed.py.
//
//   tokenizer_bench TOKENIZER TEXTS
//
// TOKENIZER is a folder or tokenizer.json, TEXTS a file with a JSON string per line. Each line on the standard input
// asks for one pass over all texts; the answer is a line with its seconds and the number of tokens.
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "carnot/core/base/file.h"
#include "carnot/core/text/tokenizer.h"

namespace carnot {
namespace {

std::size_t encode_all(const Tokenizer& tokenizer, const std::vector<std::string>& texts) {
  std::size_t tokens = 0;
  for (const std::string& text : texts) tokens += tokenizer.encode(text).size();
  return tokens;
}

Status answer_requests(const std::string& tokenizer_path, const std::string& texts_path) {
  const auto tokenizer = Tokenizer::load(tokenizer_path);
  if (!tokenizer) return tokenizer.error();
  const auto file = read_file(texts_path);
  if (!file) return file.error();
  std::vector<std::string> texts;
  for (const std::string_view line : split_lines(*file))
    if (!line.empty()) texts.push_back(nlohmann::json::parse(line).get<std::string>());
  for (std::string request; std::getline(std::cin, request);) {
    const auto begin = std::chrono::steady_clock::now();
    const std::size_t tokens = encode_all(*tokenizer, texts);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    std::cout << taken.count() << ' ' << tokens << std::endl;
  }
  return Done{};
}

}  // namespace
}  // namespace carnot

int main(int count, char** arguments) {
  if (count != 3) {
    std::cerr << "usage: tokenizer_bench TOKENIZER TEXTS\n";
    return 2;
  }
  const carnot::Status answered = carnot::answer_requests(arguments[1], arguments[2]);
  if (!answered.ok()) std::cerr << answered.error().message << '\n';
  return answered.ok() ? EXIT_SUCCESS : EXIT_FAILURE;
}
