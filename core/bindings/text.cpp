// SPDX-License-Identifier: BSD-3-Clause
// Text of LIBSVM's form.

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <string_view>

#include "bindings/arrays.hpp"
#include "bindings/modules.hpp"
#include "machine/large_array.hpp"
#include "text/libsvm.hpp"

namespace maxmargin {
namespace {

// As an array of its own type: SciPy copies what is a view of an array with many more elements.
template <class T>
nb::object taken(GrowingBytes& bytes) {
  const Integer count = static_cast<Integer>(bytes.size() / sizeof(T));
  LargeArray<std::uint8_t> memory = bytes.take();
  const Unmap deleter = memory.get_deleter();
  return nb::cast(as_array(LargeArray<T>(reinterpret_cast<T*>(memory.release()), deleter), count));
}

// The arrays come first, in (values, indices, ends, labels, queries).
template <class Value, class Index>
nb::tuple parse_libsvm(std::string_view text, const TextOptions& options) {
  auto [arrays, parsed] = [&] {
    nb::gil_scoped_release unlocked;
    RowArrays<Value, Index> rows(text);
    const ParsedRows found = LibsvmParser<Value, Index>(text, rows, options).parse();
    return std::pair(std::move(rows), found);
  }();
  return nb::make_tuple(nb::make_tuple(as_array(std::move(arrays.values), parsed.stored),
                                       as_array(std::move(arrays.indices), parsed.stored),
                                       as_array(std::move(arrays.ends), parsed.rows),
                                       as_array(std::move(arrays.labels), parsed.rows),
                                       as_array(std::move(arrays.queries), parsed.rows)),
                        parsed);
}

}  // namespace

void bind_text(nb::module_& m) {
  nb::class_<GrowingBytes> bytes(m, "GrowingBytes");
  bytes.def(nb::init<>());
  define_loop(bytes, "append", {"array"}, [](GrowingBytes& self, const AnyArray& array) {
    require(array.ndim() == 1 && contiguous(array), "the values must be contiguous");
    self.append(array.data(), array.nbytes());
  });
  bytes.def(
      "take",
      [](GrowingBytes& self, const std::string& type) {
        if (type == "float32") return taken<float>(self);
        if (type == "float64") return taken<double>(self);
        if (type == "int32") return taken<std::int32_t>(self);
        require(type == "int64", "unknown type of values");
        return taken<std::int64_t>(self);
      },
      nb::sig("def take(self, type: str) -> numpy.typing.NDArray[numpy.generic]"));

  nb::class_<Place>(m, "Place")
      .def_ro("line", &Place::line)
      .def_ro("line_begin", &Place::line_begin)
      .def_ro("begin", &Place::begin)
      .def_ro("end", &Place::end);

  nb::class_<ParsedRows>(m, "ParsedRows")
      .def_ro("lines", &ParsedRows::lines)
      .def_ro("faulty", &ParsedRows::faulty)
      .def_ro("dropped", &ParsedRows::dropped)
      .def_ro("with_query", &ParsedRows::with_query)
      .def_ro("too_narrow", &ParsedRows::too_narrow)
      .def_ro("largest", &ParsedRows::largest)
      .def_ro("largest_place", &ParsedRows::largest_place)
      .def_ro("fault", &ParsedRows::fault)
      .def_ro("fault_place", &ParsedRows::fault_place);

  m.def(
      "parse_libsvm",
      [](const Bytes& text, bool wide, bool single, Integer first_index, Integer columns, bool drop_extra,
         bool labels_optional, bool skip_faulty) {
        const std::string_view view{reinterpret_cast<const char*>(text.data()), text.size()};
        require(view.empty() || view.back() == '\n', "the text must end with a newline");
        require(view.size() <= std::numeric_limits<std::int32_t>::max(), "the text is too long");
        const TextOptions options{first_index, columns, drop_extra, labels_optional, skip_faulty};
        if (single && wide) return parse_libsvm<float, std::int64_t>(view, options);
        if (single) return parse_libsvm<float, std::int32_t>(view, options);
        if (wide) return parse_libsvm<double, std::int64_t>(view, options);
        return parse_libsvm<double, std::int32_t>(view, options);
      },
      "text"_a, nb::kw_only(), "wide"_a, "single"_a, "first_index"_a, "columns"_a, "drop_extra"_a,
      "labels_optional"_a, "skip_faulty"_a,
      nb::sig("def parse_libsvm(text: numpy.typing.NDArray[numpy.uint8], *, wide: bool, single: bool, "
              "first_index: int, columns: int, drop_extra: bool, labels_optional: bool, skip_faulty: bool) "
              "-> tuple[tuple[numpy.typing.NDArray[numpy.floating], "
              "numpy.typing.NDArray[numpy.signedinteger], numpy.typing.NDArray[numpy.int32], "
              "numpy.typing.NDArray[numpy.float64]], ParsedRows]"));
}

}  // namespace maxmargin
