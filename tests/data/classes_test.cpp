#include "data/formats/classes.h"

#include "tests/data/fixtures.h"

namespace twiddle {

namespace {

std::vector<std::string> names_in(const std::string& text) {
  const std::filesystem::path folder = fresh_folder();
  const std::string file = write_text(folder / "names.txt", text), list = write_text(folder / "list.txt", "a.png 0\n");
  return open_dataset("image_list", mapping({{"file", list}, {"classes", file}}))->classes();
}

std::string names_failure(const std::string& text) {
  return message_of(ErrorKind::data, [&] { names_in(text); });
}

}  // namespace

TEST(ClassNames, ReadsOneNamePerLine) {
  EXPECT_EQ(names_in("\xef\xbb\xbfgreat white shark\r\n  hen \ncock\n\n"),
            (std::vector<std::string>{"great white shark", "hen", "cock"}));
}

TEST(ClassNames, NamesLineOfBadFile) {
  EXPECT_NE(names_failure("cat\ndog\ncat\n").find("names.txt:3: class 'cat' is named twice"), std::string::npos);
  EXPECT_NE(names_failure("cat\n\ndog\n").find("names.txt:2: empty line"), std::string::npos);
  EXPECT_NE(names_failure("\n\n").find("names.txt: has no class name"), std::string::npos);
}

TEST(ClassNames, RefusesDuplicateName) {
  const std::string list = write_text(fresh_folder() / "list.txt", "a.png 0\n");
  const std::string message = message_of(ErrorKind::config, [&] {
    open_dataset("image_list", mapping({{"file", list}, {"classes", sequence({"x", "x"})}}));
  });
  EXPECT_NE(message.find("class 'x' is named twice"), std::string::npos) << message;
}

}  // namespace twiddle
