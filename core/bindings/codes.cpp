// SPDX-License-Identifier: BSD-3-Clause
// Rows as codes of a few bits.

#include "data/codes.hpp"

#include <variant>

#include "bindings/arrays.hpp"
#include "bindings/data.hpp"
#include "bindings/modules.hpp"

namespace maxmargin {
namespace {

using PackedWords = nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using PlacesOut = nb::ndarray<std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ValuesOut = nb::ndarray<nb::c_contig, nb::device::cpu>;

// Tables for values of one of the two types.
class AnyCodebook {
 public:
  AnyCodebook(Integer columns, bool single) : book_(Codebook<double>(columns)), columns_(columns) {
    require(columns > 0, "there must be a column");
    if (single) book_ = Codebook<float>(columns);
  }

  nb::tuple pack(const Data& data) {
    require(data.columns() == columns_, "the rows have other columns");
    PackedRows packed = [&] {
      nb::gil_scoped_release unlocked;
      return data.visit([&](const auto& rows) {
        return std::visit([&](auto& book) { return packed_by(book, rows); }, book_);
      });
    }();
    return nb::make_tuple(as_array(std::move(packed.words)), as_array(std::move(packed.widths)));
  }

  void unpack_dense(const PackedWords& words, const Bytes& widths, const ValuesOut& out) const {
    require(out.ndim() == 2 && static_cast<Integer>(out.shape(1)) == columns_, "a matrix is needed");
    per_column(widths, columns_);
    std::visit(
        [&]<class Value>(const Codebook<Value>& book) {
          require(out.dtype() == nb::dtype<Value>(), "the values are of another type");
          book.unpack(span(words), span(widths), static_cast<Integer>(out.shape(0)),
                      static_cast<Value*>(out.data()));
        },
        book_);
  }

  void unpack_sparse(const PackedWords& words, const Bytes& widths, const ValuesOut& values,
                     const PlacesOut& indices, const PlacesOut& offsets) const {
    require(values.ndim() == 1 && values.size() == indices.size() && offsets.size() > 0,
            "values, indices and offsets of matching lengths are needed");
    per_column(widths, columns_ + 2);
    std::visit(
        [&]<class Value>(const Codebook<Value>& book) {
          require(values.dtype() == nb::dtype<Value>(), "the values are of another type");
          book.unpack(span(words), span(widths), length(offsets) - 1,
                      std::span(static_cast<Value*>(values.data()), values.size()), indices.data(),
                      offsets.data());
        },
        book_);
  }

  std::size_t nbytes() const {
    return std::visit([](const auto& book) { return book.nbytes(); }, book_);
  }
  void close() {
    std::visit([](auto& book) { book.close(); }, book_);
  }

 private:
  template <class Value, class Rows>
  static PackedRows packed_by(Codebook<Value>& book, const Rows& rows) {
    if constexpr (requires { book.pack(rows); }) {
      require(rows.shift == 0, "rows that are no twins are needed");
      return book.pack(rows);
    }
    throw std::invalid_argument("the values are of another type");
  }

  std::variant<Codebook<double>, Codebook<float>> book_;
  Integer columns_;
};

}  // namespace

void bind_codes(nb::module_& m) {
  nb::class_<AnyCodebook> book(m, "Codebook");
  book.def(nb::init<Integer, bool>(), "columns"_a, "single"_a)
      .def("pack", &AnyCodebook::pack, "data"_a)
      .def("close", &AnyCodebook::close)
      .def_prop_ro("nbytes", &AnyCodebook::nbytes);
  define_loop(book, "unpack_dense", {"words", "widths", "out"}, &AnyCodebook::unpack_dense);
  define_loop(book, "unpack_sparse", {"words", "widths", "values", "indices", "offsets"},
              &AnyCodebook::unpack_sparse);
}

}  // namespace maxmargin
