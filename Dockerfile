# The command maxmargin in a small image, run by a user without rights:
#
#   docker build -t maxmargin .
#   docker run --rm -v "$PWD:/data" --user "$(id -u):$(id -g)" maxmargin train data.svm -o model.mm
#
# The folder of the data is /data inside. --user has files written as yours; without it they belong to user 1000.

FROM python:3.12-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends g++
WORKDIR /source
COPY . .
RUN python -m venv /opt/maxmargin
RUN /opt/maxmargin/bin/python -m pip install --no-cache-dir '.[tables]'
# What nobody runs in the image: the installer, and the tests of other packages.
RUN /opt/maxmargin/bin/python -m pip uninstall --yes pip
RUN find /opt/maxmargin/lib -type d -name tests -prune -exec rm -r {} +

FROM python:3.12-slim
COPY --from=build /opt/maxmargin /opt/maxmargin
ENV PATH=/opt/maxmargin/bin:$PATH MPLCONFIGDIR=/tmp PYTHONDONTWRITEBYTECODE=1
RUN useradd --uid 1000 --no-create-home --shell /usr/sbin/nologin maxmargin
USER maxmargin
WORKDIR /data
ENTRYPOINT ["maxmargin"]
CMD ["--help"]
