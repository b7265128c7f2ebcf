# syntax=docker/dockerfile:1

FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# The toolchain writes version and commit into the program, from .git.
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o /out/binlogd ./cmd/binlogd \
 && mkdir -p /out/var/lib/binlogd

# Nothing but the program, the certificate authorities and the checkpoint's folder.
FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/binlogd /usr/local/bin/binlogd
COPY --from=build --chown=65532:65532 /out/var/lib/binlogd /var/lib/binlogd
USER 65532:65532
WORKDIR /var/lib/binlogd
VOLUME /var/lib/binlogd
EXPOSE 9808
ENTRYPOINT ["/usr/local/bin/binlogd"]
CMD ["run", "-c", "/etc/binlogd/binlogd.yaml"]
