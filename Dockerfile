# A static binary on a base without shell or package manager. Digests are of indexes for all platforms; Renovate renews
# them. The toolchain is that of go.mod.

FROM --platform=$BUILDPLATFORM golang:1.26.8@sha256:0f063af2d465d8dcae54cce04278ada488b96f77b42449c8d071e47d016cc65a AS build
WORKDIR /src
COPY go.mod go.sum ./
COPY fleet/go.mod fleet/go.sum ./fleet/
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG TARGETOS TARGETARCH LDFLAGS
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=${TARGETOS:-linux} GOARCH=${TARGETARCH} \
    go build -trimpath -ldflags "-s -w ${LDFLAGS}" -o /manager .

FROM gcr.io/distroless/static:nonroot@sha256:e2e927ec666bae08560abb3c55d0659eceabb657f56b6782ab500a9fc7f555e3
LABEL org.opencontainers.image.title="Chandler" \
      org.opencontainers.image.description="Cluster API add-on provider" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/cluster-chandler/chandler"
COPY --from=build /manager /manager
USER 65532:65532
ENTRYPOINT ["/manager"]
