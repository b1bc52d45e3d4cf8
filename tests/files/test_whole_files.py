# SPDX-License-Identifier: BSD-3-Clause
"""Files are written whole or not at all: kills, full disks, missing permissions."""

from __future__ import annotations

import errno
import os
import resource
import signal
import stat
import subprocess
import sys

import numpy as np
import pytest

from maxmargin import LinearSVC
from maxmargin.files import load_model
from maxmargin.files.whole import write_whole

OLD = b"the old model"


def writes(content):
    return lambda file: file.write(content)


def test_new_and_replaced(tmp_path):
    path = tmp_path / "model"
    write_whole(path, writes(b"one"))
    assert path.read_bytes() == b"one"
    write_whole(str(path), writes(b"two"))
    assert path.read_bytes() == b"two"
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_follows_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "model", writes(b"one"))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "model").stat().st_mode) == 0o640


def test_a_replaced_file_passes_on_its_permissions(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(OLD)
    path.chmod(0o604)
    write_whole(path, writes(b"two"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


def test_a_link_is_followed(tmp_path):
    (tmp_path / "real").write_bytes(OLD)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_whole(tmp_path / "link", writes(b"two"))
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"two"


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), OSError(errno.ENOSPC, "full")])
def test_a_writer_that_fails_leaves_the_old_file(tmp_path, error):
    path = tmp_path / "model"
    path.write_bytes(OLD)

    def fail(file):
        file.write(b"half")
        raise error

    with pytest.raises(type(error)) as caught:
        write_whole(path, fail)
    assert path.read_bytes() == OLD
    assert list(tmp_path.iterdir()) == [path]
    if isinstance(error, OSError):
        assert caught.value.errno == errno.ENOSPC
        assert "the disk is full. Free some space" in str(caught.value)
        assert "The file of that name is unchanged" in str(caught.value)
        assert str(path) in str(caught.value)


def test_the_writers_trouble_with_another_file_is_its_own(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        write_whole(tmp_path / "model", lambda file: open(tmp_path / "other"))  # noqa: SIM115
    assert caught.value.filename == str(tmp_path / "other")
    assert not list(tmp_path.iterdir())


def test_places_where_nothing_can_be_written(tmp_path):
    with pytest.raises(FileNotFoundError, match="folder does not exist"):
        write_whole(tmp_path / "missing" / "model", writes(b""))
    with pytest.raises(IsADirectoryError, match="it is a folder"):
        write_whole(tmp_path, writes(b""))
    (tmp_path / "file").write_bytes(OLD)
    with pytest.raises(NotADirectoryError, match="is not a folder"):
        write_whole(tmp_path / "file" / "model", writes(b""))
    with pytest.raises(OSError, match="device or a pipe"):
        write_whole("/dev/null", writes(b""))
    assert os.path.exists("/dev/null")


@pytest.fixture
def nobody():
    """Without the powers of root, if the tests have them."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    yield
    os.seteuid(user)


@pytest.fixture
def open_folder():
    """A folder that everybody can reach, which pytest's own are not."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield folder


def test_a_folder_without_permission(open_folder, request):
    path = os.path.join(open_folder, "model")
    with open(path, "wb") as file:
        file.write(OLD)
    os.chmod(path, 0o666)
    if os.geteuid() != 0:
        os.chmod(open_folder, 0o555)
    request.getfixturevalue("nobody")
    with pytest.raises(PermissionError, match=r"no permission to write there.*unchanged"):
        write_whole(path, writes(b"two"))
    with open(path, "rb") as file:
        assert file.read() == OLD
    assert os.listdir(open_folder) == ["model"]


def test_a_protected_file_is_not_replaced(open_folder, request):
    os.chmod(open_folder, 0o777)
    path = os.path.join(open_folder, "model")
    with open(path, "wb") as file:
        file.write(OLD)
    os.chmod(path, 0o444)
    request.getfixturevalue("nobody")
    with pytest.raises(PermissionError, match="no permission"):
        write_whole(path, writes(b"two"))
    assert os.listdir(open_folder) == ["model"]


def run(script, *arguments, **options):
    return subprocess.Popen([sys.executable, "-c", script, *map(str, arguments)], **options)


KILLED = """
import sys, time
from maxmargin.files.whole import write_whole

def slowly(file):
    file.write(b"half of the new model")
    file.flush()
    print("half", flush=True)
    time.sleep(60)

write_whole(sys.argv[1], slowly)
"""


def test_a_kill_in_mid_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "model"
    LinearSVC().fit([[0.0], [1.0]], [0, 1]).save(path)
    before = path.read_bytes()
    process = run(KILLED, path, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"half\n"
    assert len(list(tmp_path.iterdir())) == 2
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert path.read_bytes() == before
    assert load_model(path).classes.tolist() == [0, 1]


LIMITED = """
import resource, sys
import numpy as np
from maxmargin import LinearSVC

X = np.random.default_rng(0).normal(size=(4000, 3))
model = LinearSVC(C=0.01).fit(X, X[:, 0] > 0)
if sys.argv[2] == "limit":
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
try:
    model.save(sys.argv[1])
except OSError as error:
    sys.exit(str(error))
"""


def assert_nothing_changed(folder, process):
    message = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait() == 1
    assert "Could not be written" in message
    assert "unchanged" in message
    assert [(p.name, p.read_bytes()) for p in folder.iterdir()] == [("model", OLD)]
    return message


def test_a_limit_on_the_size_of_files(tmp_path):
    (tmp_path / "model").write_bytes(OLD)
    process = run(LIMITED, tmp_path / "model", "limit", stderr=subprocess.PIPE)
    assert "larger than this process or disk allows" in assert_nothing_changed(tmp_path, process)
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 50_000


@pytest.fixture
def tiny_disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no right to mount a disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk(tiny_disk):
    (tiny_disk / "model").write_bytes(OLD)
    process = run(LIMITED, tiny_disk / "model", "disk", stderr=subprocess.PIPE)
    assert "the disk is full" in assert_nothing_changed(tiny_disk, process)


def test_large_models_are_written_in_pieces(tmp_path):
    # Enough rows that buffers matter; what is read is what was written.
    X = np.random.default_rng(0).normal(size=(20_000, 2))
    model = LinearSVC(C=0.01, tol=1e-2).fit(X, X[:, 0] > 0)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(
        load_model(tmp_path / "model").certificates[0].alpha, model.certificate_.alpha
    )
