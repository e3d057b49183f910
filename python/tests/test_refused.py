# SPDX-License-Identifier: Apache-2.0
"""Writer: what it does not take, and what it says then."""

import os
import pickle
import re
import uuid

import images
import numpy
import stele
from test_writer import SCHEMA, Case, sample


class Wrong(Case):
    def refused(self, kind, text, **change):
        with self.assertRaisesRegex(kind, text) as caught:
            self.writer.put("the key", {**sample(1), **change})
        self.assertIn("'the key'", str(caught.exception))

    def test_values(self):
        with stele.Writer(self.target, SCHEMA, progress=False) as self.writer:
            self.refused(TypeError, "'image' takes bytes, not <class 'str'>", image="x")
            self.refused(TypeError, "'image' takes bytes", image=5)
            for dtype in (object, [("a", "i4"), ("b", "O")]):
                self.refused(TypeError, "has addresses of objects", image=numpy.zeros(2, dtype))
            hidden = numpy.ma.array(numpy.zeros((1, 4, 3), "u1"), mask=numpy.eye(4, 3) > 0)
            self.refused(ValueError, "'mask' takes no masked elements", mask=hidden)
            self.refused(ValueError, "'image' takes no masked elements", image=hidden)
            self.refused(TypeError, "'count' takes an int, not <class 'float'>", count=1.0)
            self.refused(TypeError, "'count' takes an int, not <class 'str'>", count="1")
            for number in (1 << 63, -1 << 99):
                self.refused(ValueError, "'count' takes an int of 64 bits", count=number)
            self.refused(ValueError, "'score' takes a float: this int is too", score=10**400)
            self.refused(ValueError, "'label' has no class 'bird'", label="bird")
            for label, kind in (None, "NoneType"), (1.0, "float"):
                wanted = "the name of a class, its number, or -1 for none"
                self.refused(TypeError, f"'label' takes {wanted}, not <class '{kind}'>", label=label)
            for number in (2, -2, numpy.int64(99)):
                self.refused(
                    ValueError, f"'label' has 2 classes, and none with the number {number}", label=number
                )
            self.refused(TypeError, "'score' takes a float", score="1.0")
            self.refused(TypeError, "'caption' takes a str", caption=b"x")
            self.refused(ValueError, "'caption' takes no str with lone surr", caption="\udcff")
            for dtype, found in (("i1", "int8"), ("f8", "float64"), ("i8", "int64"), ("?", "bool")):
                text = f"'mask' takes elements of type uint8, not {found}: .* astype.'uint8'"
                self.refused(TypeError, text, mask=numpy.zeros((1, 4, 3), dtype))
            text = "float32, not '>f' of 4 bytes, which is big-endian: .* astype.'float32'"
            self.refused(TypeError, text, matrix=numpy.zeros((2, 2), ">f4"))
            text = r"'mask' takes an array of shape \(None, 4, 3\), not "
            self.refused(ValueError, text + r"\(1, 4, 4\)", mask=numpy.zeros((1, 4, 4), "u1"))
            self.refused(ValueError, text + r"\(12,\)", mask=numpy.zeros((12,), "u1"))
            text = r"'matrix' takes an array of shape \(2, 2\), not \(3, 2\)"
            self.refused(ValueError, text, matrix=numpy.zeros((3, 2), "f4"))
            self.refused(TypeError, "'mask' takes an array", mask="x")
            self.refused(ValueError, "no field 'extra'", extra=1)
            less = sample(1)
            del less["score"]
            with self.assertRaisesRegex(ValueError, "'the key': field 'score' is missing"):
                self.writer.put("the key", less)
            with self.assertRaisesRegex(TypeError, "a key is str or bytes"):
                self.writer.put(5, sample(1))
            with self.assertRaisesRegex(stele.Error, "key"):
                self.writer.put("", sample(1))
            with self.assertRaises(stele.Error) as caught:
                self.writer.put("k" * 5000, sample(1))
            self.assertEqual(caught.exception.key, "k" * 5000)
            self.assertRegex(str(caught.exception), "key of 5000 bytes, more than 4000: 'k{60}...'")
            self.assertLess(len(str(caught.exception)), 150)
            self.writer.put("good", sample(1))
            self.writer.put("of no class", {**sample(1), "label": -1})
        with stele.open(self.target) as ds:
            self.assertEqual(list(ds.keys()), ["good", "of no class"])
            self.assertEqual(ds["of no class"]["label"], -1)
            self.assertEqual(ds["good"].class_name(), "dog")
            with self.assertRaisesRegex(TypeError, "field 'count' has no classes"):
                ds["good"].class_name("count")
            with self.assertRaisesRegex(stele.NotFound, "^no class name for value -1: field 'label' has 2 classes$"):
                ds["of no class"].class_name()

    def test_no_array(self):
        """Why what could be an array is none; tensors of PyTorch may be, and know what helps."""

        class Tensor:
            def __init__(self, error):
                self.error = error

            def __array__(self, dtype=None, copy=None):
                raise self.error

        grad = RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        bits = TypeError("Got unsupported ScalarType BFloat16")
        helps = ["x.view(torch.uint16) are its bits, which a field of bfloat16 takes"]
        for error, notes in (grad, []), (bits, helps):
            for schema, of in (None, ""), ({"t": stele.tensor("float32", (2,))}, "takes an array, and "):
                with self.subTest(error=error, schema=schema), stele.Writer(self.target, schema, force=True) as w:
                    text = f"sample 'k': field 't'.* {of}.*Tensor'> gives no.*: {re.escape(str(error))}"
                    with self.assertRaisesRegex(TypeError, text) as caught:
                        w.put("k", {"t": Tensor(error)})
                    self.assertIs(caught.exception.__cause__, error)
                    self.assertEqual(getattr(caught.exception, "__notes__", []), notes)
                    w.put("k", {"t": numpy.zeros(2, "f4")})
        with stele.Writer(self.target, SCHEMA, force=True) as self.writer:
            with self.assertRaises(KeyboardInterrupt):
                self.writer.put("k", {**sample(1), "mask": Tensor(KeyboardInterrupt())})
            self.refused(TypeError, "'mask' takes an array, and .*: cannot include dtype 'M' in a buffer",
                         mask=numpy.zeros(1, "M8[s]"))  # fmt: skip
            self.refused(TypeError, "'count' takes an int, and .*ndarray'> gives none: only integer", count=numpy.array([5]))
            self.writer.put("k", sample(1))

    def test_words(self):
        with self.assertRaisesRegex(stele.NotFound, "zz") as caught:
            with stele.Writer(self.target, {"n": int}, progress=False) as w:
                w.put("a", 1)
                w.delete("zz")
        self.assertEqual(caught.exception.__notes__, ["'zz' was not put"])
        for options in {"granule": 17}, {"memory_size": 1}, {"boundary": 3}:
            with self.assertRaisesRegex(stele.Error, "^cannot begin to put samples: (granule|memory|boundary) "):
                stele.Writer(self.target, {"n": int}, force=True, progress=False, **options)

    def test_names_of_fields(self):
        for name in ("a b", "ä", "", "-a", ".a", "a" * 64, "a" * 300, "a\n"):
            with self.assertRaisesRegex(ValueError, "^field '.*: a name is 1 to 63 letters, digits") as caught:
                stele.Writer(self.target, {name: int}, progress=False)
            self.assertLess(len(str(caught.exception)), 240)
        self.assertFalse(os.path.exists(self.target))
        for name in ("a" * 63, "_a.-"):
            stele.Writer(self.target, {name: int}, progress=False).close()

    def test_too_many_fields(self):
        row = {f"f{i}": i for i in range(65)}
        message = "a schema has at most 64 fields, not 65$"
        with self.assertRaisesRegex(ValueError, f"^{message}"):
            stele.Writer(self.target, dict.fromkeys(row, int), progress=False)
        with stele.Writer(self.target, progress=False) as w:
            with self.assertRaisesRegex(ValueError, f"^sample 'k': {message}"):
                w.put("k", row)
            row.popitem()
            w.put("k", row)

    def test_schemas(self):
        for schema in (
            {"a": "bytes"}, {"a": dict}, {"a": ["x", "x"]}, {"a" * 64: int}, {"": int}, {},
            {f"f{i}": int for i in range(65)},
        ):  # fmt: skip
            with self.subTest(schema=schema), self.assertRaises((TypeError, ValueError, stele.Error)):
                stele.Writer(self.target, schema, progress=False)
            self.assertFalse(os.path.exists(self.target))
        for schema in (["x"], "x", {3: int}, 3):
            with self.assertRaisesRegex(TypeError, "a schema is a dict of fields by name"):
                stele.Writer(self.target, schema)
        for kind in (numpy.float32, 3, None, [1, 2], {"cat", "dog"}, "int"):
            with self.assertRaisesRegex(TypeError, "field 'x' is bytes, str, int, float, a list"):
                stele.Writer(self.target, {"x": kind})
        for shape in (3, "3", (2.5,)):
            with self.assertRaisesRegex(TypeError, "must be a"):
                stele.tensor("uint8", shape)
        self.assertIs(type(stele.tensor(numpy.dtype("f4"), ()).dtype), str)
        for dtype, shape in (("u8", ()), ("uint8", (2, None)), ("uint8", (0,)), ("uint8", (-1,))):
            with self.subTest(dtype=dtype, shape=shape), self.assertRaises(ValueError):
                stele.tensor(dtype, shape)
        with self.assertRaisesRegex(ValueError, r"big-endian, convert it with astype\('int32'\)"):
            stele.tensor(numpy.dtype(">i4"), ())
        with self.assertRaisesRegex(TypeError, "'granul'"):
            stele.Writer(self.target, granul=16)

    def test_at_once(self):
        """What would else be found when all is put: names, notes, options."""
        with self.assertRaisesRegex(ValueError, "note 'a.x00b' has a NUL in it"):
            stele.Writer(self.target, note="a\0b")
        with self.assertRaisesRegex(ValueError, "field 'label': class 'a.x00b' has a NUL in it"):
            stele.Writer(self.target, {"label": ["a\0b", "a"]})
        for name in ("a b", "-x", "n" * 64):
            with self.assertRaisesRegex(stele.Error, f"bad snapshot name '{name[:60]}"):
                stele.Writer(f"{self.target}@{name}", {"data": bytes})
        for options, message in (
            ({"note": 3}, "note must be a str, not 3"), ({"label": b"x"}, "label must be a str, not b'x'"),
            ({"jobs": "4"}, "jobs must be an int, not '4'"), ({"granule": -1}, "granule -1 is out of range"),
            ({"uuid": "x"}, "uuid must be a uuid.UUID or 16 bytes, not 'x'"),
        ):  # fmt: skip
            with self.assertRaisesRegex((TypeError, ValueError), message):
                stele.Writer(self.target, {"data": bytes}, **options)
        self.assertFalse(os.path.exists(self.target))

    def test_an_at_in_a_path(self):
        target = str(images.DIRECTORY / "user@host.stele")
        for name in ("v1", "v2"):
            self.write({name: b"1"}, target=f"{target}@{name}")
        self.assertEqual([s.name for s in stele.snapshots(target + "@v2")], ["v1", "v2"])
        with stele.open(target + "@v1") as ds:
            self.assertIn("user@host.stele@sha256:", repr(ds))
            self.assertEqual(len(pickle.loads(pickle.dumps(ds))), 1)

    def test_pairs(self):
        with stele.Writer(self.target, {"data": bytes}, progress=False) as w:
            for bad in (None, 3, [b"1"], ["ab"], [("a", b"1", 2)], [{3}]):
                with self.assertRaisesRegex(TypeError, "takes pairs .key, sample., or dicts"):
                    w.extend(bad)
            w.extend([["a", b"1"], ("b", b"2")])
        with stele.open(self.target) as ds:
            self.assertEqual(list(ds.keys()), ["a", "b"])

    def test_no_field_fits(self):
        for value, what in (
            (numpy.zeros(3, ">f4"), "'>f4'.*: big-endian, convert it with astype.'float32'"),
            (numpy.zeros((2, 0)), "shape .2, 0."),
            ([1], "list"),
        ):
            with stele.Writer(self.target, force=True) as w:
                with self.assertRaisesRegex(TypeError, f"'a': field 'data': no type of .*{what}"):
                    w.put("a", value)
                w.put("a", b"1")

    def test_keys_twice(self):
        with self.assertRaisesRegex(stele.ExistsError, "'b'"):
            self.write_pairs([("a", b"1"), ("b", b"2"), ("b", b"3")])
        self.assertFalse(os.path.exists(self.target))

    def write_pairs(self, pairs):
        with stele.Writer(self.target, progress=False) as w:
            w.extend(pairs)

    def test_closed(self):
        w = stele.Writer(self.target, progress=False)
        w.close()
        w.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            w.put("a", b"1")
        with self.assertRaisesRegex(ValueError, "closed"):
            w.commit()
        self.assertFalse(os.path.exists(self.target))

    def test_used_by_its_own_callback(self):
        def again(progress):
            w.put("b", b"2")

        w = stele.Writer(self.target, progress=False)
        w.put("a", b"1")
        w._listener._watch = again
        with self.assertRaisesRegex(ValueError, "in use"):
            w.commit()

    def test_after_a_fork(self):
        w = stele.Writer(self.target, progress=False)
        w.put("a", b"1")
        child = os.fork()
        if not child:
            status = 1
            try:
                w.put("b", b"2")
            except stele.ForkError:
                w.close()
                del w
                status = 0
            finally:
                os._exit(status)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        w.put("c", b"3")
        w.commit()
        with stele.open(self.target) as ds:
            self.assertEqual(sorted(ds.keys()), ["a", "c"])
