#include "carnot/worlds/open_qa/options.h"

#include "carnot/core/base/limits.h"
#include "carnot/core/base/thread_pool.h"

namespace carnot {

void OpenQaOptions::fields(FieldVisitor& visit) {
  visit.field("task_source", task_source,
              "folder with train.jsonl, test.jsonl and passages.jsonl, each also as .jsonl.xz");
  visit.field("train_file", train_file, "questions to train on, JSON lines or CSV; default: that of task_source");
  visit.field("test_file", test_file, "questions to evaluate on; default: that of task_source, or train_file");
  visit.field("question", question, "column of the question; default: the first of the usual names");
  visit.field("answer", answer, "column of the right answers; default: the first of the usual names");
  visit.field("retriever", retriever,
              "a file of passages, an index (.bm25), or the address of a server of Search-R1's API; default: the "
              "passages of task_source");
  enum_field(visit, "index_words", index_words, kIndexWords,
             "words of an index that is built here: Lucene's English analyzer, or runs of letters and digits");
  visit.field("k1", k1, "BM25: how slowly repeated words saturate", at_least(0));
  visit.field("b", b, "BM25: how much long passages are discounted", between(0, 1));
  visit.field("index_threads", index_threads, "threads that build an index, and share the vectors of a search",
              between(1, kMaxThreads));
  visit.field(
      "encoder", encoder,
      "sentence encoder by whose vectors passages are found: a folder of sentence-transformers, or its id on the "
      "hub; default: none, BM25 finds them");
  visit.field("approximate", approximate, "encoder: search a graph of neighbours instead of all vectors");
  visit.field("query_prefix", query_prefix, "encoder: before each query; E5: 'query: '");
  visit.field("passage_prefix", passage_prefix, "encoder: before each passage; E5: 'passage: '");
  visit.field("passages", passages, "passages shown for a search", between(1, 1000));
  visit.field("timeout", timeout, "seconds that a search may take", between(0.001, 1e6));
  enum_field(visit, "protocol", protocol, {"search_r1", "arpo", "verl_agent"},
             "tags, prompts and answers of Search-R1, of ARPO and A2TGPO, or of verl-agent");
  visit.field("max_searches", max_searches, "searches an episode; 0: 4 (search_r1), 6 (arpo), 3 (verl_agent)",
              between(0, kMaxEpisodeSteps));
  visit.field("max_response_tokens", max_response_tokens, "tokens of one response", between(1, kMaxResponseTokens));
  visit.field("longest_result", longest_result, "characters of a result beyond which it is cut; 0: it is shown whole",
              between(0, 1e8));
  visit.field("history_length", history_length, "verl_agent: past steps that a prompt tells of",
              between(0, kMaxEpisodeSteps));
  enum_field(visit, "reward", reward, {"exact_match", "f1", "contains"}, "what an answer earns");
  visit.field("format_scores", format_scores,
              "search_r1: 0.2 less for a right answer of broken format; 0.2 for a wrong answer of right format, 0.1 of "
              "broken format");
  visit.field("format_reward", format_reward, "arpo: reward where the format is broken");
  visit.field("penalty", penalty, "verl_agent: taken off the score of a step that is not valid", at_least(0));
}

int OpenQaOptions::searches() const {
  if (max_searches > 0) return max_searches;
  switch (protocol) {
    case QaProtocol::Arpo: return 6;
    case QaProtocol::VerlAgent: return 3;  // four steps, the last of which only answers
    case QaProtocol::SearchR1: break;
  }
  return 4;
}

}  // namespace carnot
