#include "models/checkpoints/safetensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "framework/error.h"
#include "tests/support/forwarding_stream.h"
#include "tests/support/temp_path.h"

namespace twiddle {

namespace {

std::string temporary(const std::string& name) {
  return temp_path("safetensors_" + name);
}

template <class T>
HostArray array_of(DType type, Shape shape, const std::vector<T>& values) {
  HostArray array{type, std::move(shape), std::vector<std::uint8_t>(values.size() * sizeof(T))};
  if (!values.empty()) std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

SafeTensors small_contents() {
  SafeTensors contents;
  contents.arrays["conv1.weight"] = array_of<float>(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6});
  contents.arrays["labels"] = array_of<std::int32_t>(DType::i32, {2}, {-7, 9});
  contents.arrays["nothing"] = array_of<float>(DType::f32, {0, 4}, {});
  contents.arrays["one"] = array_of<float>(DType::f32, {}, {0.5f});
  contents.metadata = {{"classes", "[\"cat\",\"dög\"]"}};
  return contents;
}

bool same_content(const SafeTensors& a, const SafeTensors& b) {
  const auto equal = [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.type == y.second.type && x.second.shape == y.second.shape &&
           x.second.bytes == y.second.bytes;
  };
  return a.arrays.size() == b.arrays.size() && a.metadata == b.metadata &&
         std::equal(a.arrays.begin(), a.arrays.end(), b.arrays.begin(), equal);
}

std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Some file systems flush a file that is overwritten, which makes thousands of writes slow: so the old file is removed
// first.
void put(const std::string& path, const std::string& bytes) {
  std::filesystem::remove(path);
  std::ofstream(path, std::ios::binary) << bytes;
}

// Returns a file with this header and `data_bytes` bytes of data.
std::string file_of(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + std::string(data_bytes, '\0');
}

// Returns the error message for a file of these bytes; nothing if it is read.
std::optional<std::string> refusal(const std::string& bytes) {
  const std::string path = temporary("hostile");
  put(path, bytes);
  try {
    read_safetensors(path);
    return std::nullopt;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
    return error.what();
  }
}

void expect_refused(const std::string& header, std::size_t data_bytes, const std::string& reason) {
  const std::optional<std::string> message = refusal(file_of(header, data_bytes));
  ASSERT_TRUE(message.has_value()) << header.substr(0, 200);
  EXPECT_NE(message->find(reason), std::string::npos) << *message;
}

}  // namespace

TEST(SafeTensors, RoundTrip) {
  const std::string path = temporary("round_trip");
  const std::string checksum = write_safetensors(path, small_contents());
  SafeTensors read = read_safetensors(path);
  EXPECT_EQ(read.metadata.at("xxh3"), checksum);
  EXPECT_EQ(read.metadata.count("xxh3:conv1.weight"), 1u);
  std::erase_if(read.metadata, [](const auto& entry) { return entry.first.starts_with("xxh3"); });
  EXPECT_TRUE(same_content(read, small_contents()));
}

TEST(SafeTensors, RoundTripsDeviceTensors) {
  const std::unique_ptr<Stream> stream = make_stream({});
  const Tensor weights = Tensor::from(*stream, {2, 2}, {1, 2, 3, 4});
  const Tensor labels = Tensor::from<std::int32_t>(*stream, {3}, {5, 6, 7});
  EXPECT_EQ(to_tensor(*stream, to_host(*stream, weights)).to_vector(*stream), (std::vector<float>{1, 2, 3, 4}));
  const Tensor copy = to_tensor(*stream, to_host(*stream, labels));
  EXPECT_EQ(copy.type(), DType::i32);
  EXPECT_EQ(copy.to_vector<std::int32_t>(*stream), (std::vector<std::int32_t>{5, 6, 7}));
}

TEST(SafeTensors, WritesTensorsWithoutCopy) {
  const std::unique_ptr<Stream> stream = make_stream({});
  const Tensor weights = Tensor::from(*stream, {2, 2}, {1, 2, 3, 4});
  const ArraySource source = source_of(*stream, {{"a", weights}}, {});
  source.read("a", [&](std::string_view part) {
    EXPECT_EQ(static_cast<const void*>(part.data()), weights.read());
    EXPECT_EQ(part.size(), weights.bytes());
  });
}

// Simulates a GPU, whose memory the host cannot read; counts the host memory that is allocated.
class OtherDevice final : public ForwardingStream {
 public:
  using ForwardingStream::ForwardingStream;
  Device device() const override { return {Device::Kind::cuda, 0}; }
  std::shared_ptr<void> allocate_host(std::size_t bytes) override {
    host_bytes += bytes;
    return ForwardingStream::allocate_host(bytes);
  }
  std::size_t host_bytes = 0;
};

TEST(SafeTensors, CopiesDeviceTensorsInSmallParts) {
  OtherDevice stream(make_stream({}));
  std::vector<float> values(3'000'001);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const std::string path = temporary("parts");
  write_safetensors(path, source_of(stream, {{"a", Tensor::from(stream, {3'000'001}, values)}}, {}));
  EXPECT_LE(stream.host_bytes, std::size_t(4) << 20);
  EXPECT_EQ(read_tensor(stream, open_safetensors(path), "a").to_vector(stream), values);
}

TEST(SafeTensors, DataIsAlignedToEightBytes) {
  const std::string path = temporary("aligned");
  write_safetensors(path, small_contents());
  std::uint64_t length = 0;
  std::memcpy(&length, contents_of(path).data(), 8);
  EXPECT_EQ(length % 8, 0u);
}

TEST(SafeTensors, ReadsFilesWithoutChecksum) {
  EXPECT_FALSE(refusal(file_of(R"({"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}})", 8)));
  EXPECT_FALSE(refusal(file_of(R"({"b":{"shape":[1],"data_offsets":[4,8],"dtype":"I32"},)"
                               R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}   )",
                               8)));
  EXPECT_FALSE(refusal(file_of("{}", 0)));
}

TEST(SafeTensors, SkipsNumBatchesTracked) {
  const std::string name = "features.1.num_batches_tracked", path = temporary("counts");
  const auto header = [](const std::string& counted, const std::string& end) {
    return "{\"" + counted + R"(":{"dtype":"I64","shape":[],"data_offsets":[0,)" + end +
           R"(]},"b":{"dtype":"F32","shape":[1],"data_offsets":[)" + end + ",12]}}";
  };
  put(path, file_of(header(name, "8"), 12));
  const SafeTensors contents = read_safetensors(path);
  EXPECT_EQ(contents.arrays.size(), 1u);
  EXPECT_EQ(contents.arrays.at("b").shape, Shape{1});
  expect_refused(header(name, "4"), 12, "takes 8 bytes, its data_offsets span 4");
  expect_refused(header("a", "8"), 12, "'a' has dtype I64; only F32, F16, BF16 and I32");
}

// 1, -2, the largest, the smallest and the smallest normal number, infinity; and NaN.
TEST(SafeTensors, ReadsFp16AndBf16AsFloats) {
  const auto read = [](const std::string& type, const std::vector<std::uint16_t>& fp16) {
    const std::string path = temporary("fp16"), bytes(reinterpret_cast<const char*>(fp16.data()), 2 * fp16.size());
    put(path, file_of(R"({"a":{"dtype":")" + type + R"(","shape":[)" + std::to_string(fp16.size()) +
                          R"(],"data_offsets":[0,)" + std::to_string(bytes.size()) + "]}}",
                      0) +
                  bytes);
    const HostArray array = read_safetensors(path).arrays.at("a");
    EXPECT_EQ(array.type, DType::f32);
    std::vector<float> values(fp16.size());
    EXPECT_EQ(array.bytes.size(), 4 * values.size());
    std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
    EXPECT_TRUE(std::isnan(values.back()));
    values.pop_back();
    return values;
  };
  EXPECT_EQ(read("F16", {0x3c00, 0xc000, 0x7bff, 0x0001, 0x0400, 0x7c00, 0x7e00}),
            (std::vector<float>{1, -2, 65504, 0x1p-24f, 0x1p-14f, INFINITY}));
  EXPECT_EQ(read("BF16", {0x3f80, 0xc000, 0x7f7f, 0x0001, 0x0080, 0x7f80, 0x7fc0}),
            (std::vector<float>{1, -2, 0x1.fep127f, 0x1p-133f, 0x1p-126f, INFINITY}));
}

// Values of 16 bits come after those of 4 bytes, and their checksums are of what is stored.
TEST(SafeTensors, WritesFp16AndBf16) {
  const std::unique_ptr<Stream> stream = make_stream({});
  const std::string path = temporary("sixteen_bits");
  write_safetensors(path, source_of(*stream,
                                    {{"a", Tensor::from<Half>(*stream, {3}, {{0x3c00}, {0xc000}, {0x0001}})},
                                     {"b", Tensor::from<Bf16>(*stream, {2}, {{0x3f80}, {0x4049}})},
                                     {"c", Tensor::from(*stream, {1}, {7})}},
                                    {}));
  const ArraySource source = open_safetensors(path);
  EXPECT_EQ(read_tensor(*stream, source, "a").to_vector(*stream), (std::vector<float>{1, -2, 0x1p-24f}));
  EXPECT_EQ(read_tensor(*stream, source, "b").to_vector(*stream), (std::vector<float>{1, 3.140625f}));
  EXPECT_EQ(read_tensor(*stream, source, "c").to_vector(*stream), (std::vector<float>{7}));
  std::string whole = contents_of(path);
  const std::string values("\0\0\xe0\x40\0\x3c\0\xc0\x01\0\x80\x3f\x49\x40", 14);
  EXPECT_EQ(whole.substr(whole.size() - 14), values);
  whole.back() ^= 1;
  EXPECT_NE(refusal(whole)->find("damaged: 'b' has checksum"), std::string::npos);
}

TEST(SafeTensors, RefusesEveryTruncation) {
  const std::string path = temporary("whole");
  write_safetensors(path, small_contents());
  const std::string whole = contents_of(path);
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_TRUE(refusal(whole.substr(0, size))) << size;
  EXPECT_TRUE(refusal(whole + '\0'));
  const std::string message = refusal(whole.substr(0, whole.size() - 4)).value();
  EXPECT_NE(message.find("damaged: header promises 36 bytes of tensors, file has 32 (truncated)"), std::string::npos)
      << message;
}

TEST(SafeTensors, SurvivesFlippedBytes) {
  const std::string path = temporary("flipped");
  write_safetensors(path, small_contents());
  const std::string whole = contents_of(path);
  const SafeTensors expected = read_safetensors(path);
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const int mask : {1, 2, 32, 255}) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ mask);
      EXPECT_TRUE(refusal(bytes) || same_content(read_safetensors(temporary("hostile")), expected)) << at;
    }
}

TEST(SafeTensors, RefusesMaliciousHeaders) {
  const auto entry = [](const std::string& type, const std::string& shape, const std::string& offsets) {
    return R"({"a":{"dtype":)" + type + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  const std::string f32 = "\"F32\"";
  expect_refused(entry("\"F64\"", "[1]", "[0,8]"), 8, "'a' has dtype F64; only F32, F16, BF16 and I32");
  expect_refused(entry("\"BF16\"", "[1]", "[0,4]"), 4, "'a' 1 takes 2 bytes");
  expect_refused(entry("7", "[1]", "[0,4]"), 4, "dtype");
  expect_refused(entry(f32, "[-1]", "[0,4]"), 4, "shape of 'a' has -1");
  expect_refused(entry(f32, "[1.0]", "[0,4]"), 4, "shape of 'a' has 1.0");
  expect_refused(entry(f32, "1", "[0,4]"), 4, "is not a list");
  expect_refused(entry(f32, "[[1]]", "[0,4]"), 4, "where none belongs");
  expect_refused(entry(f32, "[{}]", "[0,4]"), 4, "nested too deeply");
  expect_refused(entry(f32, "[4294967296,4294967296,1]", "[0,4]"), 4, "too many elements");
  expect_refused(entry(f32, "[9223372036854775807,3]", "[0,4]"), 4, "too many elements");
  expect_refused(entry(f32, "[9223372036854775807,9223372036854775807,0]", "[0,0]"), 0, "too many elements");
  expect_refused(entry(f32, "[99999999999999999999]", "[0,4]"), 4, "shape of 'a' has");
  expect_refused(entry(f32, "[1152921504606846976]", "[0,4]"), 4, "too many elements");  // 2^60, alone
  expect_refused(entry(f32, "[1e999]", "[0,4]"), 4, "a number beyond all bounds");
  expect_refused(entry(f32, "[" + std::string(400, '9') + "]", "[0,4]"), 4, "a number beyond all bounds");
  expect_refused(entry(f32, "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,4]"), 4, "more than 16");
  expect_refused(entry(f32, "[2]", "[0,4]"), 4, "takes 8 bytes, its data_offsets span 4");
  expect_refused(entry(f32, "[1]", "[4,0]"), 4, "not a range");
  expect_refused(entry(f32, "[1]", "[0]"), 4, "not a range");
  expect_refused(entry(f32, "[1]", "[0,-4]"), 4, "data_offsets of 'a' has -4");
  expect_refused(entry(f32, "[1]", "[18446744073709551612,18446744073709551616]"), 4, "data_offsets of 'a' has");
  expect_refused(entry(f32, "[1]", "[4,8]"), 8, "bytes 0 to 4 before 'a' belong to no tensor");
  expect_refused(entry(f32, "[1]", "[0,4]"), 8, "4 bytes follow the last tensor");
  expect_refused(entry(f32, "[1000000000]", "[0,4000000000]"), 8, "header promises 4,000,000,000 bytes");
}

TEST(SafeTensors, RefusesMalformedHeaders) {
  const std::string a = R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  const std::string b = R"("b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  expect_refused("{" + a + "," + b + "}", 4, "overlaps another tensor");
  expect_refused("{" + a + "," + a + "}", 4, "'a' appears twice");
  expect_refused(R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4, "twice");
  expect_refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", 4, "unknown fields");
  expect_refused("{\"" + std::string(1001, 'a') + "\":{}}", 0, "longer than 1000 bytes or has control characters");
  expect_refused(R"({"\u009b2J":{}})", 0, "longer than 1000 bytes or has control characters");
  expect_refused(R"({"\u001b[2J":{}})", 0, "longer than 1000 bytes or has control characters");
  expect_refused(R"({"a":{"dtype":"F32","shape":[1]}})", 4, "has no data_offsets");
  expect_refused(R"({"a":3})", 4, "where an entry belongs");
  expect_refused("[]", 0, "list where none belongs");
  expect_refused("3", 0, "");
  expect_refused("", 0, "not valid JSON");
  expect_refused("{" + a, 4, "not valid JSON");
  expect_refused("{" + a + "}x", 4, "not valid JSON");
  expect_refused("{\"\xff\xfe\":{}}", 0, "not valid JSON");
  expect_refused(R"({"__metadata__":{"a":1}})", 0, "what is not a string");
  expect_refused(R"({"__metadata__":{"a":"b","a":"c"}})", 0, "twice");
  expect_refused(R"({"__metadata__":"a"})", 0, "holds string where an entry belongs");
  expect_refused(R"({"a":{"dtype":["F32"],"shape":[1],"data_offsets":[0,4]}})", 4, "dtype of 'a' is not a string");
  expect_refused(R"({"__metadata__":{"a":["b"]}})", 0, "list where none belongs");
  expect_refused(std::string(1'000'000, '['), 0, "list where none belongs");
  std::string nested = "{\"__metadata__\":";
  for (int i = 0; i < 100'000; ++i) nested += "{\"a\":";
  expect_refused(nested, 0, "nested too deeply");
}

TEST(SafeTensors, RefusesHugeHeaderLengths) {
  for (const std::uint64_t length : {std::uint64_t((16 << 20) + 1), ~std::uint64_t(0), std::uint64_t(1) << 63}) {
    const std::string message = refusal(std::string(reinterpret_cast<const char*>(&length), 8) + "{}").value();
    EXPECT_NE(message.find("header would take"), std::string::npos) << message;
  }
  const std::uint64_t length = 16 << 20;
  EXPECT_NE(refusal(std::string(reinterpret_cast<const char*>(&length), 8) + "{}")->find("truncated"),
            std::string::npos);
}

TEST(SafeTensors, NamesFilesOfOtherKinds) {
  using namespace std::string_literals;
  const std::string pytorch = "PK\x03\x04"s + std::string(22, '\0') + "\x10\0\0\0archive/data.pkl"s;
  EXPECT_NE(refusal(pytorch)->find("not a safetensors file but a PyTorch file (.pt or .pth); save its tensors"),
            std::string::npos);
  EXPECT_NE(refusal("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n")->find("run `git lfs pull`"),
            std::string::npos);
}

TEST(SafeTensors, RefusesOtherPaths) {
  EXPECT_THROW(read_safetensors(temporary("not_there")), Error);
  EXPECT_THROW(read_safetensors(testing::TempDir()), Error);
  EXPECT_THROW(read_safetensors("/dev/zero"), Error);
}

TEST(SafeTensors, RefusesToWriteInvalidUtf8Names) {
  SafeTensors contents;
  contents.arrays["\xff"] = array_of<float>(DType::f32, {1}, {1});
  EXPECT_THROW(write_safetensors(temporary("latin"), contents), Error);
}

}  // namespace twiddle
