#include "carnot/chart/svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/well_formed.h"

namespace carnot {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Escaped, LeavesNothingThatMeansSomethingToXml) {
  EXPECT_EQ(escaped("a < b & \"c\" > 'd'"), "a &lt; b &amp; &quot;c&quot; &gt; &#39;d&#39;");
  EXPECT_EQ(escaped("<|im_end|>"), "&lt;|im_end|&gt;");
  EXPECT_EQ(escaped(std::string("a\x1b\0b\n", 5)), "ab\n");
  EXPECT_EQ(escaped("Größe 日本"), "Größe 日本");
}

TEST(Drawing, IsWellFormedWhateverItsTextsSay) {
  Drawing drawing(100, 50, "<a> & \"b\"");
  drawing.line({0, 0}, {1, 1}, {.dashes = "\"><script>"});
  drawing.path(std::vector<Point>{{0, 1}, {2, 3.456}}, {});
  drawing.area(std::vector<Point>{{0, 1}, {2, 3}, {4, 5}}, "#fff", 0.5);
  drawing.begin_hint("1 < 2");
  drawing.circle({1, 2}, 3, "#123456");
  drawing.end_hint();
  drawing.text({1, 2}, "</svg>", {.bold = true, .turned = -90});
  EXPECT_EQ(testing::problem_with_markup(drawing.svg()), "");
  EXPECT_THAT(drawing.svg(), Not(HasSubstr("<script>")));
  EXPECT_THAT(drawing.svg(), HasSubstr("points=\"0,1 2,3.46\""));
}

TEST(Drawing, WritesHundredthsOfPixelsWithoutNeedlessDigits) {
  Drawing drawing(100, 50, "");
  drawing.line({1.0, 2.5}, {-0.001, 3.14159}, {});
  EXPECT_THAT(drawing.svg(), HasSubstr("x1=\"1\" y1=\"2.5\" x2=\"0\" y2=\"3.14\""));
}

TEST(Colours, AreToldApartBeyondTenSeries) {
  EXPECT_NE(colour_of(0), colour_of(9));
  EXPECT_EQ(colour_of(3), colour_of(13));
  EXPECT_NE(dashes_of(3), dashes_of(13));
}

}  // namespace
}  // namespace carnot
