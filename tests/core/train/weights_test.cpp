// Weights: a round trip through safetensors keeps every bit; damaged and foreign files are named.
#include "core/train/weights.h"

#include <ATen/ops/randn.h>
#include <unistd.h>

#include <fstream>

#include "core/base/files.h"
#include "core/train/safetensors.h"
#include "recipes.h"

namespace assay::train {
namespace {

class Files : public testing::Test {
 protected:
  Files() : folder_(testing::TempDir() + "assay-weights-" + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~Files() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path file(const char* name) const { return folder_ / name; }

  std::string refusal(const std::string& content) const {
    std::ofstream(file("bad.safetensors"), std::ios::binary) << content;
    try {
      read_safetensors(file("bad.safetensors"));
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }

 private:
  std::filesystem::path folder_;
};

using Safetensors = Files;

std::string with_header(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

TEST_F(Safetensors, KeepEveryBitOfEveryDtype) {
  NamedTensors tensors;
  for (const auto dtype :
       {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf, at::kLong, at::kByte}) {
    tensors[at::toString(dtype)] = at::randn({3, 5}).mul(10).to(dtype);
  }
  tensors["empty"] = at::randn({0, 4});
  tensors["transposed"] = at::randn({4, 3}).t();
  write_safetensors(file("all.safetensors"), tensors, {{"format", "pt"}});
  const NamedTensors back = read_safetensors(file("all.safetensors"));
  ASSERT_EQ(back.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    EXPECT_EQ(back.at(name).scalar_type(), tensor.scalar_type()) << name;
    EXPECT_TRUE(back.at(name).equal(tensor)) << name;
  }
}

TEST_F(Safetensors, StartWithTheLengthOfAJsonHeaderThatNamesTheData) {
  write_safetensors(file("one.safetensors"), {{"w", at::randn({2, 3})}});
  const std::string content = read_file(file("one.safetensors"));
  uint64_t length = 0;
  std::memcpy(&length, content.data(), 8);
  ASSERT_EQ(content.size(), 8 + length + 24);
  EXPECT_EQ(length % 8, 0u);
  const auto header = nlohmann::json::parse(content.substr(8, length));
  EXPECT_EQ(header["w"]["dtype"], "F32");
  EXPECT_EQ(header["w"]["shape"], nlohmann::json({2, 3}));
  EXPECT_EQ(header["w"]["data_offsets"], nlohmann::json({0, 24}));
}

TEST_F(Safetensors, RefuseWhatIsDamaged) {
  EXPECT_THROW(read_safetensors(file("absent.safetensors")), Error);
  EXPECT_NE(refusal("abc").find("it has 3 bytes"), std::string::npos);
  EXPECT_NE(refusal(std::string(16, '\xff')).find("header length"), std::string::npos);
  EXPECT_NE(refusal(with_header("{not json", "")).find("does not parse"), std::string::npos);
  const std::string entry = R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  EXPECT_NE(refusal(with_header(entry, "1234")).find("outside of the data"), std::string::npos);
  const std::string wrong_size = R"({"w":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})";
  EXPECT_NE(refusal(with_header(wrong_size, "12345678")).find("not its shape's"),
            std::string::npos);
  const std::string wrong_type = R"({"w":{"dtype":"F31","shape":[2],"data_offsets":[0,8]}})";
  EXPECT_NE(refusal(with_header(wrong_type, "12345678")).find("unknown dtype 'F31'"),
            std::string::npos);
}

TEST_F(Files, ExportAndImportGiveTheNextStepTheSameBits) {
  auto trained = make_trainer(small_config());
  run_steps(*trained, 2);
  export_weights(trained->assembly(), file("model.safetensors"));
  auto config = small_config();
  config["seed"] = 7;  // other initial weights, all overwritten
  auto imported = make_trainer(config);
  import_weights(imported->assembly(), file("model.safetensors"));
  EXPECT_EQ(weight_difference(*imported, *trained), 0.0);
  EXPECT_EQ(imported->evaluate(1).loss, trained->evaluate(1).loss);
}

TEST_F(Files, ImportNamesEveryParameterThatDoesNotFit) {
  auto trainer = make_trainer(small_config());
  export_weights(trainer->assembly(), file("model.safetensors"));
  NamedTensors tensors = read_safetensors(file("model.safetensors"));
  tensors.erase("lm_head.weight");
  tensors["model.norm.weight"] = at::randn({3});
  tensors["stranger"] = at::randn({1});
  write_safetensors(file("other.safetensors"), tensors);
  try {
    import_weights(trainer->assembly(), file("other.safetensors"));
    FAIL() << "a file that does not fit was imported";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("missing   lm_head.weight"), std::string::npos) << text;
    EXPECT_NE(text.find("misshapen model.norm.weight: file [3], model [64]"), std::string::npos);
    EXPECT_NE(text.find("extra     stranger"), std::string::npos);
  }
}

}  // namespace
}  // namespace assay::train
