#include "carnot/serving/tinker/wire.h"

#include <cstring>
#include <stdexcept>

// A field of another wire type than its reader expects is bad input.
#define protozero_assert(condition) \
  if (!(condition)) throw std::invalid_argument("a field has an unexpected type")
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

namespace carnot {
namespace {

using protozero::pbf_reader;
using protozero::pbf_writer;

enum DType { kFloat32 = 1, kInt64 = 2 };
constexpr std::int64_t kMostElements = std::int64_t{1} << 26;

template <class Number>
std::vector<Number> numbers_of(std::string_view bytes) {
  std::vector<Number> numbers(bytes.size() / sizeof(Number));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(Number));
  return numbers;
}

template <class Number>
std::string bytes_of(const std::vector<Number>& numbers) {
  std::string bytes(numbers.size() * sizeof(Number), '\0');
  if (!numbers.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

std::string_view view_of(pbf_reader& message) {
  const auto view = message.get_view();
  return {view.data(), view.size()};
}

Result<std::vector<TokenId>> read_chunk(pbf_reader chunk) {
  std::vector<TokenId> tokens;
  while (chunk.next()) {
    if (chunk.tag() != 1) return Error{"expected encoded text, found an image or sound"};
    pbf_reader text = chunk.get_message();
    while (text.next(1)) {
      const std::string_view bytes = view_of(text);
      if (bytes.size() % sizeof(TokenId) != 0) return Error{"its tokens are cut short"};
      tokens = numbers_of<TokenId>(bytes);
    }
  }
  return tokens;
}

/// The number of elements; -1 where it is out of bounds.
std::int64_t num_elements(const std::vector<std::int64_t>& shape) {
  std::int64_t elements = 1;
  for (const std::int64_t size : shape) {
    if (size < 0 || size > kMostElements) return -1;
    elements *= size;
    if (elements > kMostElements) return -1;
  }
  return elements;
}

Result<TinkerTensor> read_tensor(pbf_reader message) {
  TinkerTensor tensor;
  std::optional<std::string_view> dense;
  int type = 0;
  while (message.next()) {
    switch (message.tag()) {
      case 1: dense = view_of(message); break;
      case 2: return Error{"sparse tensors are not supported; expected a dense one"};
      case 3: type = message.get_enum(); break;
      case 4: {
        if (message.wire_type() == protozero::pbf_wire_type::varint) {
          tensor.shape.push_back(message.get_int64());
        } else {
          for (const std::int64_t size : message.get_packed_int64()) tensor.shape.push_back(size);
        }
        break;
      }
      default: message.skip();
    }
  }
  if (type != kFloat32 && type != kInt64) return Error{"expected float32 or int64"};
  const std::size_t width = type == kFloat32 ? sizeof(float) : sizeof(std::int64_t);
  const std::string_view bytes = dense.value_or("");
  if (tensor.shape.empty()) tensor.shape.push_back(static_cast<std::int64_t>(bytes.size() / width));
  const std::int64_t elements = num_elements(tensor.shape);
  if (elements < 0 || bytes.size() != static_cast<std::size_t>(elements) * width)
    return Error{"its shape does not fit its " + std::to_string(bytes.size()) + " bytes"};
  if (type == kFloat32) {
    const auto values = numbers_of<float>(bytes);
    tensor.values.assign(values.begin(), values.end());
  } else {
    for (const std::int64_t value : numbers_of<std::int64_t>(bytes))
      tensor.values.push_back(static_cast<double>(value));
  }
  return tensor;
}

/// A map's entry: its key, and its value as a message.
std::pair<std::string, pbf_reader> read_entry(pbf_reader entry) {
  std::pair<std::string, pbf_reader> pair;
  while (entry.next()) {
    if (entry.tag() == 1)
      pair.first = entry.get_string();
    else if (entry.tag() == 2)
      pair.second = entry.get_message();
    else
      entry.skip();
  }
  return pair;
}

Result<TinkerDatum> read_datum(pbf_reader message) {
  TinkerDatum datum;
  while (message.next()) {
    if (message.tag() == 1) {
      CARNOT_ASSIGN_OR_RETURN(const auto tokens, read_chunk(message.get_message()));
      datum.tokens.insert(datum.tokens.end(), tokens.begin(), tokens.end());
    } else if (message.tag() == 2) {
      const auto [name, value] = read_entry(message.get_message());
      auto tensor = read_tensor(value);
      if (!tensor) return Error{"loss_fn_inputs." + name + ": " + tensor.error().message};
      datum.inputs[name] = std::move(*tensor);
    } else {
      message.skip();
    }
  }
  return datum;
}

std::optional<TinkerSetting> read_setting(pbf_reader value) {
  std::optional<TinkerSetting> setting;
  while (value.next()) {
    if (value.tag() == 1)
      setting = value.get_double();
    else if (value.tag() == 2)
      setting = value.get_string();
    else
      value.skip();
  }
  return setting;
}

Result<ForwardBackwardRequest> read_request(pbf_reader message) {
  ForwardBackwardRequest request;
  while (message.next()) {
    switch (message.tag()) {
      case 1: request.model_id = message.get_string(); break;
      case 2: request.seq_id = message.get_int32(); break;
      case 3: {
        auto datum = read_datum(message.get_message());
        if (!datum) return Error{"data[" + std::to_string(request.data.size()) + "]: " + datum.error().message};
        request.data.push_back(std::move(*datum));
        break;
      }
      case 4: request.loss = message.get_string(); break;
      case 6: request.forward_only = message.get_bool(); break;
      case 7: {
        const auto [name, value] = read_entry(message.get_message());
        if (const auto setting = read_setting(value)) request.settings[name] = *setting;
        break;
      }
      default: message.skip();
    }
  }
  return request;
}

void add_column(pbf_writer& record, const std::string& name, const std::vector<std::vector<float>>& column) {
  std::string data;
  std::vector<std::int64_t> offsets{0};
  for (const std::vector<float>& values : column) {
    data += bytes_of(values);
    offsets.push_back(static_cast<std::int64_t>(data.size()));
  }
  pbf_writer field(record, 2);
  field.add_string(1, name);
  pbf_writer tensor(field, 2);
  tensor.add_bytes(1, data);
  tensor.add_bytes(2, bytes_of(offsets));
  tensor.add_enum(3, kFloat32);
}

void add_text(pbf_writer& message, const SampledText& text) {
  enum StopReason { kStop = 0, kLength = 1 };
  pbf_writer sequence(message, 1);
  sequence.add_enum(1, text.stopped ? kStop : kLength);
  sequence.add_bytes(2, bytes_of(text.tokens));
  sequence.add_bytes(3, bytes_of(text.log_probs));
  if (text.likeliest.k == 0) return;
  pbf_writer likeliest(sequence, 4);
  likeliest.add_bytes(1, bytes_of(text.likeliest.tokens));
  likeliest.add_bytes(2, bytes_of(text.likeliest.log_probs));
  likeliest.add_uint32(3, static_cast<std::uint32_t>(text.likeliest.k));
  likeliest.add_uint32(4, static_cast<std::uint32_t>(text.tokens.size()));
}

}  // namespace

Result<ForwardBackwardRequest> parse_forward_backward(std::string_view bytes) {
  try {
    return read_request(pbf_reader(bytes.data(), bytes.size()));
  } catch (const std::exception& problem) {
    return Error{std::string("not a ForwardBackwardRequest: ") + problem.what()};
  }
}

std::string forward_backward_bytes(const ForwardBackwardOutput& output) {
  std::string bytes;
  pbf_writer message(bytes);
  message.add_string(1, "ArrayRecord");
  if (output.num_data > 0) {
    pbf_writer record(message, 2);
    for (const auto& [name, column] : output.columns) add_column(record, name, column);
    record.add_int64(3, output.num_data);
  }
  for (const auto& [name, value] : output.metrics) {
    pbf_writer metric(message, 3);
    metric.add_string(1, name);
    metric.add_double(2, value);
  }
  return bytes;
}

std::string sample_bytes(const SampleOutput& output) {
  std::string bytes;
  pbf_writer message(bytes);
  for (const SampledText& text : output.texts) add_text(message, text);
  if (output.prompt_log_probs) message.add_bytes(2, bytes_of(*output.prompt_log_probs));
  return bytes;
}

}  // namespace carnot
