#include "carnot/worlds/open_qa/arpo.h"

#include <algorithm>

#include "carnot/core/base/utf8.h"

namespace carnot {

std::string_view arpo_search_prompt() {
  return "You are a helpful assistant that can solve the given question step by step with the help of the wikipedia "
         "search tool. Given a question, you need to first think about the reasoning process in the mind and then "
         "provide the answer. During thinking, you can invoke the wikipedia search tool to search for fact information "
         "about specific topics if needed. The reasoning process and answer are enclosed within <think> </think> and "
         "<answer> </answer> tags respectively, and the search query and result are enclosed within <search> </search> "
         "and <result> </result> tags respectively. For example, <think> This is the reasoning process. </think> "
         "<search> search query here </search> <result> search result here </result> <think> This is the reasoning "
         "process. </think> <answer> The final answer is \\[ \\boxed{answer here} \\] </answer>. In the last part of "
         "the answer, the final exact answer is enclosed within \\boxed{} with latex format.";
}

std::string arpo_passages(const RetrievedPassages& passages) {
  if (passages.empty()) return "Tool(search) returned empty output.";
  std::string text;
  for (std::size_t i = 0; i < passages.size(); ++i) {
    const std::string_view contents = passages[i].contents;
    const auto line = std::min(contents.find('\n'), contents.size());
    text += "Doc " + std::to_string(i + 1) + " (Title: " + std::string(contents.substr(0, line)) + ")\n" +
            std::string(contents.substr(std::min(line + 1, contents.size()))) + "\n\n";
  }
  return std::string(stripped(text));
}

}  // namespace carnot
