"""Command lines of ordinary programs, none of which uses a GPU. Each prints the same every time.

    python ordinary.py             runs all that are installed, and prints their results as JSON

The names of those that are not installed are in the result, too.
"""

import json
import shlex
import shutil
import subprocess
import sys

TEXT = "three\none\ntwo\none\n"
SECONDS = 60

# All of them read TEXT as their input.
COMMANDS = """
arch
awk '{print NR, $1}'
base32
base64
basename /a/b
bash -c 'for i in 1 2 3; do (echo $i); done; /bin/true | cat'
bc -q
bunzip2 --help
bzip2 -c
cat
chmod --version
chown --version
cksum
cmp /etc/passwd /etc/passwd
comm /etc/passwd /etc/passwd
cp --version
csplit --version
cut -c1-2
dash -c 'for i in 1 2 3; do /bin/true; done; echo $(echo done)'
date -u -d @0
dd bs=1 status=none
df --version
diff /etc/passwd /etc/passwd
dircolors
dirname /a/b
dpkg --version
dpkg-query --version
du --version
echo a
env -i /bin/echo a
expand
expr 1 + 2
factor 123456789
find /etc/passwd -exec true {} +
flock /etc/passwd true
fmt
fold -w 2
gawk 'END {print NR}'
getconf PAGE_SIZE
getent passwd root
getopt -o a -- -a
git --version
gpg --version
grep -n one
gunzip --help
gzip -nc
head -n 2
hexdump -C
hostname --help
id -u
install --version
join /etc/passwd /etc/passwd
ldconfig -V
ldd --version
link --version
ln --version
locale
logger --help
ls -d /etc /usr
lsblk --help
m4 --version
make --version
mawk '{print NR}'
md5sum
mkdir --version
mktemp --version
more --help
mount --version
mv --version
namei /etc/passwd
nice true
nl
node -p '[1, 2].map(String)'
nohup true
nproc --version
numfmt --to=iec 123456
od -c
openssl version
openssl dgst -sha256
paste -s
patch --version
pathchk a
perl -e 'fork() // die; wait; print sort <STDIN>'
perl -MPOSIX -MSocket -MIO::Handle -e 'print POSIX::floor(1.5), "\\n"'
pgrep --version
pinky --version
pr -t
printenv PATH
printf '%s\\n' a
ps --version
pwd
python3 -c 'import subprocess; [subprocess.run(["/bin/true"], check=True) for _ in range(20)]'
python3 -c 'import ctypes, ssl, sqlite3, hashlib; print(ctypes.CDLL(None).getppid() > 0)'
python3 -c 'import os; os.posix_spawn("/bin/echo", ["echo", "a"], {}); os.wait()'
python3 -c 'import multiprocessing as m; m.Process(target=print, args=("a",)).start()'
python3 -c 'import threading; [threading.Thread(target=print, args=("a",)).start() for _ in "ab"]'
readlink -f /bin/sh
realpath /bin/sh
rev
rm --version
rmdir --version
ruby -e 'puts STDIN.readlines.sort'
sed s/o/0/g
seq 5
setpriv --version
setsid --wait true
sha1sum
sha256sum
sha512sum
shred --version
shuf --version
sleep 0
sort -u
split --version
sqlite3 :memory: 'select 1'
stat -c %F /etc
stdbuf -oL cat
strace --version
stty --version
sum
sync --version
tac
tail -n 1
tar --version
tclsh
tee
test a
timeout 60 true
touch --version
tr a-z A-Z
true
truncate --version
tsort --version
tty
uname -s
unexpand
uniq -c
unlink --version
unshare --version
unzip -v
vdir -d /etc --time-style=+
wc
wget --version
which sh
xargs -n 1 echo
xz -c
yes --version
zcat --help
zip -h
zstd -qc
""".strip().splitlines()


def main() -> None:
    results: dict[str, tuple[int, str, str] | None] = {}
    for line in COMMANDS:
        words = shlex.split(line)
        if not shutil.which(words[0]):
            results[line] = None
            continue
        done = subprocess.run(
            words, input=TEXT.encode(), capture_output=True, check=False, timeout=SECONDS
        )
        # latin-1 keeps every byte.
        results[line] = (
            done.returncode,
            done.stdout.decode("latin-1"),
            done.stderr.decode("latin-1"),
        )
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
